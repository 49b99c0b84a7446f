{{/* Where the router lives. Fixed: routerUrl's default, the Secrets, the claim and the dispatchers' own policies name it. */}}
{{- define "celln.namespace" -}}
celln-system
{{- end }}

{{- define "celln.controlPlaneNamespace" -}}
{{- .Values.celln.controlPlaneNamespace | default .Release.Namespace -}}
{{- end }}

{{/* Empty unless objects of a router are to be rendered. */}}
{{- define "celln.rendersRouter" -}}
{{- if and .Values.celln.enabled (not .Values.celln.router.external) -}}
true
{{- end -}}
{{- end }}

{{/*
What Service, Deployment and budget select. The second label keeps pods of an older router, which carry the first one too, out of
the Service.
*/}}
{{- define "celln.selectorLabels" -}}
app.kubernetes.io/name: celln-router
cellkit.dev/component: execution-router
{{- end }}

{{- define "celln.labels" -}}
{{ include "celln.selectorLabels" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "celln.image" -}}
{{- with .Values.celln.router.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The router's flags, for the container that serves and for the one before it that proves that the image takes them. */}}
{{- define "celln.routerArguments" -}}
{{- with .Values.celln.router -}}
- --listen=0.0.0.0:8788
- --internal-listen=0.0.0.0:8789
- --mode={{ .mode }}
- {{ printf "--backends=%s" (join "," .backends) | quote }}
- --client-token-file=/etc/celln/client/token
- --token-file=/etc/celln/backend/token
- --capability-token-file=/etc/celln/capability/token
{{- if .rotationOverlap }}
- --next-client-token-file=/etc/celln/client/next
- --next-capability-token-file=/etc/celln/capability/next
{{- end }}
{{- if .tlsSecret }}
- --tls-cert=/etc/celln/tls/tls.crt
- --tls-key=/etc/celln/tls/tls.key
{{- end }}
- --ownership-dir=/var/lib/celln/ownership
{{- if .requireExistingLedger }}
- --require-existing-ledger
{{- end }}
- --max-connections={{ .maxConnections }}
- --log-level={{ .logLevel }}
- --log-format=json
{{- end -}}
{{- end }}

{{/*
The router's Secrets, each a directory of its own below /etc/celln. Of those with tokens only the keys that the router reads are
shown; for an overlap that is the whole Secret, since a key that is listed must be there and `next` comes and goes.
*/}}
{{- define "celln.routerSecrets" -}}
{{- with .Values.celln.router -}}
{{- $next := ternary list (list "token") (.rotationOverlap | default false) -}}
{{- $secrets := list
  (dict "volume" "client-token" "directory" "client" "secret" .clientTokenSecret "keys" $next)
  (dict "volume" "backend-token" "directory" "backend" "secret" .backendTokenSecret "keys" (list "token"))
  (dict "volume" "capability-token" "directory" "capability" "secret" .capabilityTokenSecret "keys" $next)
-}}
{{- if .tlsSecret -}}
{{- $secrets = append $secrets (dict "volume" "tls" "directory" "tls" "secret" .tlsSecret "keys" (list "tls.crt" "tls.key")) -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}
{{- end }}

{{/* What no container of the router's pods may do. */}}
{{- define "celln.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
