//! A small cluster's pods, as an API server would send them to a client.
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A recording: its lines, and the version that each one is about.
#[derive(Clone, Debug)]
pub struct Trace {
    /// One frame each, without the end of the line.
    pub lines: Vec<String>,
    /// The version of each line; that of the line before it where a frame has none.
    pub versions: Vec<u64>,
}

impl Trace {
    /// The recording as the text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

/// What the server holds of a pod.
#[derive(Clone)]
struct Pod {
    uid: u32,
    version: u64,
    qos: &'static str,
    gpus: u32,
    phase: &'static str,
    node: Option<u32>,
}

struct Server {
    rng: fastrand::Rng,
    pods: BTreeMap<String, Pod>,
    version: u64,
    uids: u32,
    names: u32,
    trace: Trace,
    /// Whether changes reach the client.
    connected: bool,
}

/// A recording of about `frames` frames: a list, changes, bookmarks, lost stretches that end in an
/// expired watch and a relist in several pages, pods that are created again under the same name.
#[must_use]
pub fn generate(seed: u64, frames: usize) -> Trace {
    let mut server = Server {
        rng: fastrand::Rng::with_seed(seed),
        pods: BTreeMap::new(),
        version: 1000,
        uids: 0,
        names: 0,
        trace: Trace {
            lines: Vec::new(),
            versions: Vec::new(),
        },
        connected: false,
    };
    for _ in 0..30 {
        server.change();
    }
    server.list();
    while server.trace.lines.len() < frames {
        match server.rng.u32(..1000) {
            0..=3 => server.expire(),
            4..=13 => server.bookmark(),
            _ => server.change(),
        }
    }
    server.trace
}

impl Server {
    fn change(&mut self) {
        // Versions have gaps: other collections change too.
        self.version += self.rng.u64(1..5);
        let full = self.pods.len() > 60;
        match self.rng.u8(..10) {
            0..=2 if !full => self.create(),
            3..=4 => self.delete(),
            5 => self.recreate(),
            _ => self.modify(),
        }
    }

    fn create(&mut self) {
        let name = format!("pod-{:04}", self.names);
        self.names += 1;
        self.put_new(name);
    }

    fn put_new(&mut self, name: String) {
        self.uids += 1;
        let pod = Pod {
            uid: self.uids,
            version: self.version,
            qos: ["BE", "Burstable", "Guaranteed", "LS"][self.rng.usize(..4)],
            gpus: [0, 1, 1, 2, 8][self.rng.usize(..5)],
            phase: "Pending",
            node: None,
        };
        self.send("ADDED", &name, &pod);
        self.pods.insert(name, pod);
    }

    fn modify(&mut self) {
        let Some(name) = self.any() else { return };
        let mut pod = self.pods[&name].clone();
        pod.version = self.version;
        match pod.phase {
            "Pending" => {
                pod.phase = "Running";
                pod.node = Some(self.rng.u32(..8));
            }
            _ => pod.phase = ["Running", "Succeeded", "Failed"][self.rng.usize(..3)],
        }
        self.send("MODIFIED", &name, &pod);
        self.pods.insert(name, pod);
    }

    fn delete(&mut self) {
        let Some(name) = self.any() else { return };
        let mut pod = self.pods.remove(&name).expect("it was just found");
        pod.version = self.version;
        self.send("DELETED", &name, &pod);
    }

    fn recreate(&mut self) {
        let Some(name) = self.any() else { return };
        let mut pod = self.pods.remove(&name).expect("it was just found");
        pod.version = self.version;
        self.send("DELETED", &name, &pod);
        self.version += 1;
        self.put_new(name);
    }

    fn any(&mut self) -> Option<String> {
        let at = self.rng.usize(..self.pods.len().max(1));
        self.pods.keys().nth(at).cloned()
    }

    fn bookmark(&mut self) {
        let object =
            json!({"kind": "Pod", "metadata": {"resourceVersion": self.version.to_string()}});
        self.line("BOOKMARK", &object);
    }

    /// The client is cut off, misses changes, and is told that its version is gone.
    fn expire(&mut self) {
        self.connected = false;
        for _ in 0..self.rng.usize(1..60) {
            self.change();
        }
        let before = self.trace.versions.last().copied().unwrap_or_default();
        let status = json!({
            "kind": "Status", "code": 410, "reason": "Expired",
            "message": "too old resource version"
        });
        self.line("ERROR", &status);
        if let Some(version) = self.trace.versions.last_mut() {
            *version = before;
        }
        self.list();
    }

    fn list(&mut self) {
        let items: Vec<Value> = self
            .pods
            .iter()
            .map(|(name, pod)| object(name, pod))
            .collect();
        let page = self.rng.usize(1..=items.len().max(1));
        let pages: Vec<&[Value]> = match items.chunks(page).collect::<Vec<_>>() {
            pages if pages.is_empty() => vec![&[]],
            pages => pages,
        };
        for (at, items) in pages.iter().enumerate() {
            let mut metadata = json!({"resourceVersion": self.version.to_string()});
            if at + 1 < pages.len() {
                metadata["continue"] = json!(format!("page-{}", at + 1));
            }
            let list = json!({"kind": "PodList", "metadata": metadata, "items": items});
            self.line("LIST", &list);
        }
        self.connected = true;
    }

    fn send(&mut self, kind: &str, name: &str, pod: &Pod) {
        if self.connected {
            let object = object(name, pod);
            self.line(kind, &object);
        }
    }

    fn line(&mut self, kind: &str, object: &Value) {
        self.trace
            .lines
            .push(json!({"type": kind, "object": object}).to_string());
        self.trace.versions.push(self.version);
    }
}

fn object(name: &str, pod: &Pod) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "main:1"}]});
    if let Some(node) = pod.node {
        spec["nodeName"] = json!(format!("node-{node}"));
    }
    json!({
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "batch", "uid": format!("uid-{}", pod.uid),
            "resourceVersion": pod.version.to_string(),
            "labels": {"qos": pod.qos, "num-gpu": pod.gpus.to_string()}
        },
        "spec": spec,
        "status": {"phase": pod.phase}
    })
}
