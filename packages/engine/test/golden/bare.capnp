using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "app", worker = .worker),
    (name = "do-storage", disk = (path = "/data/cells", writable = true))
  ],
  sockets = [
    (
      name = "public",
      address = "unix:/run/cellkit/public",
      http = (cfBlobHeader = "cellkit-cf-0123"),
      service = (name = "app", entrypoint = "CellkitPublic")
    ),
    (
      name = "control",
      address = "unix:/run/cellkit/control",
      http = (),
      service = (name = "app", entrypoint = "CellkitControl", props = (json = "{\"node\":\"node-1\"}"))
    ),
    (
      name = "peer",
      address = "unix:/run/cellkit/peer",
      http = (style = proxy),
      service = (name = "app", entrypoint = "CellkitPeer", props = (json = "{\"kind\":\"do\"}"))
    ),
    (
      name = "peer-rpc",
      address = "unix:/run/cellkit/rpc",
      http = (),
      service = (name = "app", entrypoint = "CellkitPeer", props = (json = "{\"kind\":\"rpc\"}"))
    )
  ],
  cluster = (
    bucket = "s3://fleet/prefix",
    bucketOptions = [
      "aws_region=us-east-1",
      "aws_credentials_file=/data/workerd/credentials"
    ],
    address = "127.0.0.1:0",
    advertise = "10.0.0.7:8081",
    key = "0000000000000000000000000000000000000000000000000000000000000000",
    stopTimeoutMs = 8000
  )
);

const worker :Workerd.Worker = (
  modules = [
    (name = "cellkit-entry.js", esModule = embed "module-0"),
    (name = "cellkit-runtime.js", esModule = embed "module-1"),
    (name = "cellkit-peer.js", esModule = embed "module-2"),
    (name = "index.js", esModule = embed "module-3")
  ],
  compatibilityDate = "2026-10-01",
  compatibilityFlags = [],
  bindings = [],
  durableObjectNamespaces = []
);
