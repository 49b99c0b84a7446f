{{/*
What speaks against rendering, a line each, all of them at once. Lines name the value and say what to do. They quote no value: a
token that was pasted into the wrong place must not be printed.
*/}}
{{- define "celln.problems" -}}
{{- include "celln.problems.notHere" . -}}
{{- if .Values.celln.enabled -}}
{{- include "celln.problems.clients" . -}}
{{- if not .Values.celln.router.external -}}
{{- include "celln.problems.router" . -}}
{{- include "celln.problems.storage" . -}}
{{- end -}}
{{- include "celln.problems.distinct" . -}}
{{- include "celln.problems.migration" . -}}
{{- end -}}
{{- end }}

{{/* What the original's charts have and this one does not, whether or not celln.enabled. */}}
{{- define "celln.problems.notHere" -}}
{{- if .Values.celln.installer.enabled }}
- celln.installer.enabled: the legacy installer is not in this chart. It changes files and systemd units of hosts, and neither an uninstall nor a rollback changes them back. Provision the dispatchers yourself and leave it false.
{{- end }}
{{- if dig "bootstrap" "enabled" false .Values.celln }}
- celln.bootstrap.enabled: not in this chart. A template that makes tokens makes others wherever it is rendered without the cluster, and a claim that a release made is deleted with it. Create the Secrets and the claim yourself.
{{- end }}
{{- range $part := list "dispatcher" "fleet" "mediation" }}
{{- if dig $part "enabled" false $.Values.celln }}
- celln.{{ $part }}.enabled: not in this chart, which lists its dispatchers by name in celln.router.backends.
{{- end }}
{{- end }}
{{- if .Values.celln.router.parentTokenSecret }}
- celln.router.parentTokenSecret: this router does not route parents, and refuses the flag. Leave it empty.
{{- end }}
{{- end }}

{{/* What the controller and the API server need, with a router of this chart or another one. */}}
{{- define "celln.problems.clients" -}}
{{- with .Values.celln -}}
{{- if not (regexMatch "^https?://[^/?#@\\s]+/?$" .routerUrl) }}
- celln.routerUrl: must be http://HOST:PORT or https://HOST:PORT, with nothing after it.
{{- end }}
{{- if and .controlPlaneNamespace (not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" .controlPlaneNamespace)) }}
- celln.controlPlaneNamespace: must be the name of a namespace, lowercase letters, digits and - in it: the policy lets its pods in, and with another one nobody.
{{- end }}
{{- if and (not (hasPrefix "https://" .routerUrl)) (not .allowInsecureHttp) }}
- celln.allowInsecureHttp: celln.routerUrl is not https://, so that tokens and work travel in the clear. Set it to true to accept that, on a network that you trust.
{{- end }}
{{- if and $.Values.celln.router.tlsSecret (not $.Values.celln.router.external) (not (hasPrefix "https://" .routerUrl)) }}
- celln.routerUrl: with celln.router.tlsSecret the router speaks TLS and nothing else. Begin it with https://.
{{- end }}
{{- include "celln.problems.name" (dict "key" "celln.tokenSecret" "name" .tokenSecret "kind" "Secret" "what" "with the client token, in the controller's namespace") }}
{{- include "celln.problems.name" (dict "key" "celln.capabilityTokenSecret" "name" .capabilityTokenSecret "kind" "Secret" "what" "with the discovery token, in the API server's namespace") }}
{{- if .caConfigMap }}
{{- include "celln.problems.name" (dict "key" "celln.caConfigMap" "name" .caConfigMap "kind" "ConfigMap" "what" "with ca-bundle.crt") }}
{{- end }}
{{- end -}}
{{- end }}

{{/* What the router's own objects need. */}}
{{- define "celln.problems.router" -}}
{{- with .Values.celln.router -}}
{{- if not (regexMatch "^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$" .image.repository) }}
- celln.router.image.repository: name the image with cellkit-router as REGISTRY/NAME, without tag and digest. There is no default.
{{- end }}
{{- if and .image.digest (not (regexMatch "^sha256:[0-9a-f]{64}$" .image.digest)) }}
- celln.router.image.digest: must be sha256: and 64 lowercase hex digits, those of the image that you built and tried.
{{- end }}
{{- if and .image.tag (not (regexMatch "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$" .image.tag)) }}
- celln.router.image.tag: is no tag of an image.
{{- end }}
{{- if not (or .image.digest .image.tag) }}
- celln.router.image.digest is empty: pin the router's image by its digest (or, weaker, name a tag).
{{- end }}
{{- if not .backends }}
- celln.router.backends is empty: list every dispatcher as http://HOST:PORT, in the same order for all routers.
{{- end }}
{{- range $index, $backend := .backends }}
{{- if not (regexMatch "^http://(\\[[0-9A-Fa-f:.]+\\]|[^]/,?#@:[\\s]+)(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$" $backend) }}
- celln.router.backends[{{ $index }}]: must be http://HOST or http://HOST:PORT of one dispatcher, with nothing after it.
{{- end }}
{{- end }}
{{- $addresses := list }}
{{- range .backends }}
{{- $addresses = append $addresses (regexReplaceAll ":80$" (lower .) "") }}
{{- end }}
{{- if ne (len .backends) (len (uniq $addresses)) }}
- celln.router.backends: the same dispatcher stands there twice. Its address is the name under which it owns work; list it once.
{{- end }}
{{- if not .allowInsecureBackends }}
- celln.router.allowInsecureBackends: routers talk to dispatchers without TLS, so that the dispatchers' token travels in the clear. Set it to true to accept that, on a network that you trust.
{{- end }}
{{- include "celln.problems.name" (dict "key" "celln.router.clientTokenSecret" "name" .clientTokenSecret "kind" "Secret" "what" "with the client token, in celln-system") }}
{{- include "celln.problems.name" (dict "key" "celln.router.backendTokenSecret" "name" .backendTokenSecret "kind" "Secret" "what" "with the dispatchers' token, in celln-system") }}
{{- include "celln.problems.name" (dict "key" "celln.router.capabilityTokenSecret" "name" .capabilityTokenSecret "kind" "Secret" "what" "with the discovery token, in celln-system") }}
{{- if .tlsSecret }}
{{- include "celln.problems.name" (dict "key" "celln.router.tlsSecret" "name" .tlsSecret "kind" "Secret" "what" "with tls.crt and tls.key") }}
{{- end }}
{{- end -}}
{{- end }}

{{/*
The ledger's volume. What the cluster says about it is known to an install or upgrade only: a lookup of a list is empty when there is no
cluster, and is a list, perhaps of nothing, when there is one.
*/}}
{{- define "celln.problems.storage" -}}
{{- with .Values.celln.router -}}
{{- include "celln.problems.name" (dict "key" "celln.router.ownershipClaim" "name" .ownershipClaim "kind" "PersistentVolumeClaim" "what" "for the ledger, in celln-system: one that exists, that all replicas share and that was qualified") }}
{{- $claims := lookup "v1" "PersistentVolumeClaim" "celln-system" "" }}
{{- if and .ownershipClaim $claims }}
{{- $modes := "none" }}
{{- range $claims.items }}
{{- if eq .metadata.name $.Values.celln.router.ownershipClaim }}
{{- $modes = join "," .spec.accessModes }}
{{- end }}
{{- end }}
{{- if eq $modes "none" }}
- celln.router.ownershipClaim: celln-system has no PersistentVolumeClaim of that name. This chart makes none, since one of its own would go with the release, and the ledger with it.
{{- else if contains "ReadWriteOncePod" $modes }}
- celln.router.ownershipClaim: its access mode ReadWriteOncePod lets one pod have it. Replicas share it, and during a rollout even a single one does with its successor.
{{- end }}
{{- end }}
{{- end -}}
{{- end }}

{{/* Only names can be compared here; the router compares the contents, for each request. */}}
{{- define "celln.problems.distinct" -}}
{{- $router := ternary dict .Values.celln.router .Values.celln.router.external -}}
{{- $execution := dict "celln.tokenSecret" .Values.celln.tokenSecret "celln.router.clientTokenSecret" $router.clientTokenSecret }}
{{- $backend := dict "celln.router.backendTokenSecret" $router.backendTokenSecret }}
{{- $discovery := dict "celln.capabilityTokenSecret" .Values.celln.capabilityTokenSecret "celln.router.capabilityTokenSecret" $router.capabilityTokenSecret }}
{{- range $key, $name := $execution }}
{{- range $otherKey, $otherName := $backend }}
{{- if and $name (eq $name ($otherName | default "")) }}
- {{ $key }} and {{ $otherKey }} name the same Secret: what submits work and what dispatchers accept must differ.
{{- end }}
{{- end }}
{{- end }}
{{- range $key, $name := $discovery }}
{{- range $otherKey, $otherName := merge (dict) $execution $backend }}
{{- if and $name (eq $name ($otherName | default "")) }}
- {{ $key }} and {{ $otherKey }} name the same Secret: who may look must not be able to run anything.
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A router of before the ledger. Seen by an install or upgrade only: without a cluster a lookup finds nothing. */}}
{{- define "celln.problems.migration" -}}
{{- range $namespace := list "celln-system" $.Release.Namespace (include "celln.controlPlaneNamespace" $) | uniq }}
{{- if lookup "apps/v1" "DaemonSet" $namespace "celln-router" }}
- DaemonSet celln-router in {{ $namespace }}: a router without a ledger still takes work, and this ledger knows nothing of it. Stop all submissions, settle every outstanding run with the dispatcher that has it, keep receipts and audit, delete the DaemonSet, then install.
{{- end }}
{{- end }}
{{- end }}

{{/* A name that must be given and be one of Kubernetes. */}}
{{- define "celln.problems.name" -}}
{{- if not .name }}
- {{ .key }} is empty: name the {{ .kind }} {{ .what }}.
{{- else if not (and (le (len .name) 253) (regexMatch "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" .name)) }}
- {{ .key }} must be the name of a {{ .kind }}: lowercase letters, digits, - and . in it. A token itself never stands in values.
{{- end }}
{{- end }}
