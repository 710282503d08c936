//! What a scenario is made of before its first step: sources, handlers, indexes, transforms.
use super::notation::{Count, Exchange, ListItem, ObjectText, duration};
use super::spec::{
    Given, HandlerSpec, IndexSpec, Keep, KindSpec, LimiterSpec, SourceSpec, TransformSpec,
};
use super::trouble::{Place, Reading, Trouble};
use super::yaml::{Node, Value};
use informant::reflector::BackoffConfig;
use informant::source::Selectors;
use std::time::Duration;

/// The settings of a scenario; what is not written has the engine's default.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Versions can only be told equal or different.
    pub opaque: bool,
    /// The transport offers streaming lists. `None`: as the steps need it.
    pub streaming: Option<bool>,
    /// Objects a page. `None`: what the first list of the steps says.
    pub page_size: Option<u32>,
    /// How waits after failures grow.
    pub backoff: Option<BackoffConfig>,
    /// The informer's resync period.
    pub resync: Option<Duration>,
    /// Keys that may wait in the queue.
    pub queue_bound: Option<usize>,
    /// How many streaming lists may end without their marker.
    pub streaming_tries: Option<u32>,
    /// How long a streaming list may be silent.
    pub streaming_patience: Option<Duration>,
    /// How long a watch that meets internal errors is retried before a relist.
    pub internal_error_retry: Option<Duration>,
    /// How long a page, or the opening of a watch, may take.
    pub call_timeout: Option<Duration>,
    /// The handlers that are there from the start.
    pub handlers: Vec<HandlerSpec>,
    /// The indexes that are there from the start.
    pub indexes: Vec<IndexSpec>,
    /// What is made of each object.
    pub transform: Option<TransformSpec>,
    /// The sources, where there is more than one, or one with selectors.
    pub sources: Vec<SourceSpec>,
    /// Namespaces of one source, each of which becomes a source.
    pub namespaces: Vec<String>,
    /// Only objects for which this holds are kept by a wrapper around the transport.
    pub keep: Option<Keep>,
    /// What was listed before the first step.
    pub given: Option<Given>,
    /// The rate limiter of a work queue.
    pub limiter: Vec<LimiterSpec>,
    /// The kinds of a factory, with their transforms.
    pub kinds: Vec<KindSpec>,
    /// Answers that are ready from the start.
    pub server: Vec<Exchange>,
    /// How long a step waits for a request.
    pub patience: Option<Duration>,
}

/// The keys of a scenario that are settings.
pub const KEYS: [&str; 22] = [
    "versions",
    "streaming",
    "page_size",
    "backoff",
    "resync",
    "queue_bound",
    "streaming_tries",
    "streaming_patience",
    "internal_error_retry",
    "call_timeout",
    "handlers",
    "handler",
    "indexes",
    "index",
    "transform",
    "sources",
    "namespaces",
    "keep",
    "given",
    "limiter",
    "kinds",
    "patience",
];

impl Settings {
    /// Take a setting.
    ///
    /// # Errors
    /// When its value is not understood.
    pub fn set(&mut self, key: &Node, value: &Node) -> Reading<()> {
        let name = key.expect_text("a key")?;
        let time = || duration(value.place, value.expect_text(name)?);
        match name {
            "versions" => {
                self.opaque = match value.expect_text(name)? {
                    "opaque" => true,
                    "decimal" => false,
                    other => {
                        return Err(Trouble::unknown(
                            value.place,
                            "sort of versions",
                            other,
                            ["decimal", "opaque"],
                        ));
                    }
                };
            }
            "streaming" => self.streaming = Some(boolean(value)?),
            "page_size" => self.page_size = Some(number(value)?),
            "backoff" => self.backoff = Some(backoff(value)?),
            "resync" => self.resync = Some(time()?),
            "queue_bound" => self.queue_bound = Some(number(value)?),
            "streaming_tries" => self.streaming_tries = Some(number(value)?),
            "streaming_patience" => self.streaming_patience = Some(time()?),
            "internal_error_retry" => self.internal_error_retry = Some(time()?),
            "call_timeout" => self.call_timeout = Some(time()?),
            "patience" => self.patience = Some(time()?),
            "handlers" | "handler" => self.handlers = named(value, HandlerSpec::read)?,
            "indexes" | "index" => self.indexes = named(value, IndexSpec::read)?,
            "transform" => self.transform = Some(TransformSpec::read(value)?),
            "sources" => self.sources = named(value, SourceSpec::read)?,
            "namespaces" => {
                for part in value.parts() {
                    self.namespaces
                        .push(part.expect_text("a namespace")?.to_owned());
                }
            }
            "keep" => self.keep = Some(keep(value)?),
            "given" => self.given = Some(given(value)?),
            "limiter" => {
                self.limiter = match &value.value {
                    Value::Sequence(items) => items.iter().map(limiter).collect::<Reading<_>>()?,
                    _ => vec![limiter(value)?],
                };
            }
            "kinds" => self.kinds = named(value, KindSpec::read)?,
            other => return Err(Trouble::unknown(key.place, "key", other, KEYS)),
        }
        Ok(())
    }
}

/// Named things in any of the notations: `a`, `[a, b]`, `{a: {…}}`, `[{name: a, …}]`.
pub fn named<T>(node: &Node, read: impl Fn(&str, Place, &Node) -> Reading<T>) -> Reading<Vec<T>> {
    let nothing = |place| Node::scalar(place, "");
    let one = |node: &Node| -> Reading<T> {
        match &node.value {
            Value::Mapping(entries) => {
                let name = entries.iter().find(|(key, _)| key.text() == Some("name"));
                if let Some((_, name)) = name {
                    return read(name.expect_text("a name")?, node.place, node);
                }
                match entries.as_slice() {
                    [(key, value)] => read(key.expect_text("a name")?, key.place, value),
                    _ => Err(node.trouble("this needs a name").suggest("name: h1")),
                }
            }
            _ => read(
                node.expect_text("a name")?,
                node.place,
                &nothing(node.place),
            ),
        }
    };
    match &node.value {
        Value::Mapping(entries) if !entries.iter().any(|(key, _)| key.text() == Some("name")) => {
            entries
                .iter()
                .map(|(key, value)| read(key.expect_text("a name")?, key.place, value))
                .collect()
        }
        Value::Mapping(_) => Ok(vec![one(node)?]),
        _ => node.parts().iter().map(one).collect(),
    }
}

/// `true` or `false`.
pub fn boolean(node: &Node) -> Reading<bool> {
    match node.text() {
        Some("true" | "yes" | "on") => Ok(true),
        Some("false" | "no" | "off") => Ok(false),
        _ => Err(node.trouble("this must be true or false")),
    }
}

/// A plain number.
pub fn number<N: std::str::FromStr>(node: &Node) -> Reading<N> {
    let text = node.expect_text("a number")?;
    text.parse()
        .map_err(|_| node.trouble(format!("{text:?} is no number that fits here")))
}

/// Objects, as patterns.
pub fn objects(node: &Node) -> Reading<Vec<ObjectText>> {
    node.parts().iter().map(ObjectText::read).collect()
}

fn backoff(node: &Node) -> Reading<BackoffConfig> {
    let mut config = BackoffConfig::default();
    if node.text() == Some("exact") {
        config.jitter = 0.0;
        return Ok(config);
    }
    for (key, value) in node.entries("backoff")? {
        let name = key.expect_text("a key")?;
        let time = || duration(value.place, value.expect_text(name)?);
        match name {
            "initial" | "base" => config.initial = time()?,
            "max" | "cap" => config.max = time()?,
            "factor" => config.factor = number(value)?,
            "jitter" if value.text() == Some("none") => config.jitter = 0.0,
            "jitter" => config.jitter = number(value)?,
            "reset_after" => config.reset_after = time()?,
            other => {
                let known = ["initial", "max", "factor", "jitter", "reset_after"];
                return Err(Trouble::unknown(key.place, "key of backoff", other, known));
            }
        }
    }
    Ok(config)
}

fn keep(node: &Node) -> Reading<Keep> {
    let text = node.expect_text("keep")?;
    if let Some(end) = text.strip_prefix('*') {
        return Ok(Keep::NamesEndingIn(end.to_owned()));
    }
    if let Some(begin) = text.strip_suffix('*') {
        return Ok(Keep::NamesBeginningWith(begin.to_owned()));
    }
    Err(node
        .trouble(format!("{text:?} is no filter"))
        .suggest("keep: \"*1\" keeps names that end in 1, \"web*\" those that begin with web"))
}

fn given(node: &Node) -> Reading<Given> {
    let mut given = Given {
        version: "1".to_owned(),
        items: Vec::new(),
    };
    let mut versioned = false;
    for (key, value) in node.entries("given")? {
        match key.expect_text("a key")? {
            "rv" | "last_seen" | "version" => {
                value.expect_text("rv")?.clone_into(&mut given.version);
                versioned = true;
            }
            "store" | "objects" => {
                for part in value.parts() {
                    given.items.push(ListItem::read(&part)?);
                }
            }
            other => {
                return Err(Trouble::unknown(
                    key.place,
                    "key of given",
                    other,
                    ["rv", "store"],
                ));
            }
        }
    }
    if !versioned {
        let newest = given.items.iter().filter_map(|item| match item {
            ListItem::Good(object) | ListItem::Bad(object) => {
                object.version.as_ref()?.parse::<u64>().ok()
            }
        });
        given.version = newest.max().unwrap_or(1).to_string();
    }
    Ok(given)
}

fn limiter(node: &Node) -> Reading<LimiterSpec> {
    let fields = node.entries("a limiter")?;
    let time = |name: &str, default: Duration| -> Reading<Duration> {
        match fields.iter().find(|(key, _)| key.text() == Some(name)) {
            Some((_, value)) => duration(value.place, value.expect_text(name)?),
            None => Ok(default),
        }
    };
    let find = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key.text() == Some(name))
            .map(|(_, value)| value)
    };
    let known = [
        "base",
        "max",
        "fast",
        "slow",
        "attempts",
        "per_second",
        "burst",
    ];
    for (key, _) in fields {
        let name = key.expect_text("a key")?;
        if !known.contains(&name) {
            return Err(Trouble::unknown(key.place, "key of limiter", name, known));
        }
    }
    if let Some(rate) = find("per_second") {
        return Ok(LimiterSpec::Bucket {
            per_second: number(rate)?,
            burst: find("burst").map_or(Ok(1), number)?,
        });
    }
    if find("fast").is_some() {
        return Ok(LimiterSpec::FastSlow {
            fast: time("fast", Duration::from_millis(5))?,
            slow: time("slow", Duration::from_secs(10))?,
            attempts: find("attempts").map_or(Ok(3), number)?,
        });
    }
    Ok(LimiterSpec::Exponential {
        base: time("base", Duration::from_millis(5))?,
        max: time("max", Duration::from_secs(1000))?,
    })
}

/// Read what part of a collection is asked for.
///
/// # Errors
/// When a key is unknown.
pub fn selectors(entries: &[(Node, Node)], also: &[&str]) -> Reading<Selectors> {
    let mut selectors = Selectors::default();
    for (key, value) in entries {
        let name = key.expect_text("a key")?;
        if also.contains(&name) {
            continue;
        }
        let text = Some(value.expect_text(name)?.to_owned());
        match name {
            "namespace" => selectors.namespace = text,
            "labels" | "selector" => selectors.labels = text,
            "fields" => selectors.fields = text,
            "shard" => selectors.shard = text,
            other => {
                let known = ["namespace", "labels", "fields", "shard"]
                    .into_iter()
                    .chain(also.iter().copied());
                return Err(Trouble::unknown(key.place, "key", other, known));
            }
        }
    }
    Ok(selectors)
}

/// A count from a node.
///
/// # Errors
/// When it is none.
pub fn count(node: &Node) -> Reading<Count> {
    Count::parse(node.place, node.expect_text("a count")?)
}
