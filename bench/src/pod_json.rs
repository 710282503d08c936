//! Pods as an API server sends them: about eight kilobytes of JSON, a third of it managedFields.
use serde_json::{Value, json};

/// The pod of this number, in this version.
pub(crate) fn pod(at: usize, version: u64) -> Value {
    let app = format!("app-{:03}", at % 300);
    let name = format!("{app}-{:011x}-{:05}", at * 7_919, at % 99_991);
    let uid = format!("{at:08x}-0000-4000-8000-{at:012x}");
    let containers: Vec<_> = (0..2).map(|which| container(&app, which)).collect();
    let statuses: Vec<_> = (0..2)
        .map(|which| container_status(&app, which, at))
        .collect();
    let conditions: Vec<_> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-30T08:15:50Z"}))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": format!("{app}-{:011x}-", at * 7_919),
            "namespace": format!("namespace-{:03}", at % 100),
            "uid": uid,
            "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-11-30T08:15:42Z",
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/instance": format!("{app}-production"),
                "app.kubernetes.io/version": format!("1.{}.0", at % 20),
                "pod-template-hash": format!("{:09x}", at * 31),
                "topology.kubernetes.io/zone": format!("zone-{}", at % 3),
            },
            "annotations": {
                "kubectl.kubernetes.io/restartedAt": "2026-11-29T10:00:00Z",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9090",
                "checksum/config": format!("{:064x}", at * 104_729),
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": format!("{app}-{:011x}", at * 7_919),
                "uid": format!("{:08x}-1111-4000-8000-{at:012x}", at % 300),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
            "managedFields": managed_fields(&uid),
        },
        "spec": {
            "nodeName": format!("node-{:04}.example", at % 1_000),
            "serviceAccountName": app,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
            "containers": containers,
            "volumes": [
                {"name": "config", "configMap": {"name": format!("{app}-config"), "defaultMode": 420}},
                {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ]}},
            ],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        },
        "status": {
            "phase": "Running",
            "hostIP": format!("10.0.{}.{}", at % 250, at % 199),
            "podIP": format!("10.{}.{}.{}", at % 100, at % 250, at % 199),
            "podIPs": [{"ip": format!("10.{}.{}.{}", at % 100, at % 250, at % 199)}],
            "qosClass": "Burstable",
            "startTime": "2026-11-30T08:15:43Z",
            "conditions": conditions,
            "containerStatuses": statuses,
        },
    })
}

fn container(app: &str, which: usize) -> Value {
    let env: Vec<_> = (0..4)
        .map(|at| {
            let value = format!("https://service-{at}.{app}.svc.example:8443/path");
            json!({"name": format!("SETTING_{at}"), "value": value})
        })
        .collect();
    json!({
        "name": format!("{app}-{which}"),
        "image": format!("registry.example/team/{app}:1.{which}.0"),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen=:8080", "--log-format=json", "--shutdown-grace=20s"],
        "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9090, "protocol": "TCP"},
        ],
        "env": env,
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3, "successThreshold": 1},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5, "timeoutSeconds": 1, "failureThreshold": 3, "successThreshold": 1},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app", "readOnly": true},
            {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    })
}

fn container_status(app: &str, which: usize, at: usize) -> Value {
    json!({
        "name": format!("{app}-{which}"),
        "image": format!("registry.example/team/{app}:1.{which}.0"),
        "imageID": format!("registry.example/team/{app}@sha256:{:064x}", which + 1),
        "containerID": format!("containerd://{:064x}", at * 31 + which),
        "ready": true, "started": true, "restartCount": at % 3,
        "state": {"running": {"startedAt": "2026-11-30T08:15:49Z"}},
        "lastState": {},
    })
}

/// What three writers own: a tree of field names, most of them as long as the values.
fn managed_fields(uid: &str) -> Value {
    let owner = format!("k:{{\"uid\":\"{uid}\"}}");
    let env: serde_json::Map<_, _> = (0..4)
        .map(|at| {
            let key = format!("k:{{\"name\":\"SETTING_{at}\"}}");
            (key, json!({".": {}, "f:name": {}, "f:value": {}}))
        })
        .collect();
    let container = |which: usize| {
        json!({
            ".": {}, "f:args": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
            "f:env": env,
            "f:livenessProbe": {".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}, "f:scheme": {}}, "f:periodSeconds": {}, "f:successThreshold": {}, "f:timeoutSeconds": {}},
            "f:readinessProbe": {".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}, "f:scheme": {}}, "f:periodSeconds": {}, "f:successThreshold": {}, "f:timeoutSeconds": {}},
            "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}},
            "f:ports": {".": {}, "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}}},
            "f:volumeMounts": {".": {}, "k:{\"mountPath\":\"/etc/app\"}": {".": {}, "f:mountPath": {}, "f:name": {}, "f:readOnly": {}}},
            "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}, "f:index": which,
        })
    };
    json!([
        {
            "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
            "time": "2026-11-30T08:15:42Z", "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:annotations": {".": {}, "f:checksum/config": {}, "f:prometheus.io/port": {}, "f:prometheus.io/scrape": {}}, "f:generateName": {}, "f:labels": {".": {}, "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/instance": {}, "f:app.kubernetes.io/version": {}, "f:pod-template-hash": {}}, "f:ownerReferences": {".": {}, owner: {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"first\"}": container(0), "k:{\"name\":\"second\"}": container(1)}, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:serviceAccountName": {}, "f:terminationGracePeriodSeconds": {}},
            },
        },
        {
            "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "subresource": "status",
            "time": "2026-11-30T08:15:50Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}, "k:{\"type\":\"ContainersReady\"}": {".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}}, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:podIPs": {}, "f:startTime": {}}},
        },
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_pod_is_about_eight_kilobytes_a_third_of_them_managed_fields() {
        let pod = super::pod(4_711, 7);
        let all = pod.to_string().len();
        let managed = pod["metadata"]["managedFields"].to_string().len();
        assert!((7_000..9_500).contains(&all), "{all}");
        assert!(
            (0.28..0.40).contains(&(managed as f64 / all as f64)),
            "{managed} of {all}"
        );
    }
}
