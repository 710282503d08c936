//! Reading and running a scenario.
use super::check::{Failure, flip, leaves};
use super::keys::unknown;
use super::queue_world::QueueWorld;
use super::work_queue_world::WorkQueueWorld;
use super::world::InformerWorld;
use super::yaml::{Located, Node, ReadError, Value};

/// A scenario that has been read.
#[derive(Clone, Debug)]
pub struct Scenario {
    file: String,
    root: Vec<(Node, Node)>,
}

const KEYS: [&str; 13] = [
    "id",
    "title",
    "source",
    "versions",
    "transport",
    "informer",
    "handlers",
    "indexes",
    "transform",
    "queue",
    "work_queue",
    "steps",
    "expect",
];

impl Scenario {
    /// Read a scenario; `file` is only for error messages.
    ///
    /// # Errors
    /// [`ReadError`] when it is no YAML or has an unknown key at its top.
    pub fn read(file: &str, text: &str) -> Result<Self, ReadError> {
        let located = |(line, message): Located| ReadError {
            file: file.to_owned(),
            line,
            message,
        };
        let root = Node::read(text).map_err(located)?;
        let root = root.map().map_err(located)?.to_vec();
        for (key, _) in &root {
            let word = key.text().map_err(located)?;
            if !KEYS.contains(&word) {
                return Err(located((key.line, unknown("key", word, &KEYS))));
            }
        }
        let scenario = Self {
            file: file.to_owned(),
            root,
        };
        if scenario.entry("expect").is_none() && scenario.expectations().map_err(located)? == 0 {
            return Err(located((1, "the scenario expects nothing".to_owned())));
        }
        Ok(scenario)
    }

    fn entry(&self, key: &str) -> Option<&Node> {
        self.root
            .iter()
            .find(|(k, _)| k.text() == Ok(key))
            .map(|(_, v)| v)
    }

    /// Steps in order; without any, the informer is started and given a moment.
    fn steps(&self) -> Result<Vec<(Node, Node)>, Located> {
        let text = |text: &str| Node {
            line: 1,
            value: Value::Text(text.to_owned()),
        };
        let nothing = || Node {
            line: 1,
            value: Value::Null,
        };
        let mut steps = Vec::new();
        match self.entry("steps") {
            None => steps.push((text("start"), nothing())),
            Some(node) => {
                for item in node.items() {
                    if let Value::Map(entries) = &item.value {
                        steps.extend(entries.iter().cloned());
                    } else {
                        item.text()?;
                        steps.push((item.clone(), nothing()));
                    }
                }
            }
        }
        if let Some(expect) = self.entry("expect") {
            steps.push((text("expect"), expect.clone()));
        }
        Ok(steps)
    }

    fn expectations(&self) -> Result<usize, Located> {
        let mut count = 0;
        for (verb, argument) in self.steps()? {
            if verb.text()? == "expect" {
                for (key, value) in argument.map()? {
                    count += leaves(key.text()?, value);
                }
            }
        }
        Ok(count)
    }
}

/// The three kinds of scenario.
enum World {
    Informer(Box<InformerWorld>),
    Queue(Box<QueueWorld>),
    WorkQueue(Box<WorkQueueWorld>),
}

impl World {
    fn read(scenario: &Scenario) -> Result<Self, Located> {
        if let Some(settings) = scenario.entry("work_queue") {
            return Ok(Self::WorkQueue(Box::new(WorkQueueWorld::read(settings)?)));
        }
        if let Some(settings) = scenario.entry("queue") {
            return Ok(Self::Queue(Box::new(QueueWorld::read(
                &scenario.root,
                settings,
            )?)));
        }
        Ok(Self::Informer(Box::new(InformerWorld::read(
            &scenario.root,
        )?)))
    }

    async fn step(&mut self, verb: &Node, argument: &Node) -> Result<(), Located> {
        match self {
            Self::Informer(world) => world.step(verb, argument).await,
            Self::Queue(world) => world.step(verb, argument),
            Self::WorkQueue(world) => world.step(verb, argument),
        }
    }

    fn expect(&mut self, key: &Node, node: &Node) -> Result<Option<String>, Located> {
        match self {
            Self::Informer(world) => world.expect(key, node),
            Self::Queue(world) => world.expect(key, node),
            Self::WorkQueue(world) => world.expect(key, node),
        }
    }
}

/// Run a scenario, in virtual time and on this thread. What does not hold, in order.
///
/// # Errors
/// [`ReadError`] when the scenario says something that is not in the language.
pub fn run(scenario: &Scenario) -> Result<Vec<Failure>, ReadError> {
    run_flipped(scenario, None)
}

/// Flip each expectation once and run the scenario again: every flipped one must fail. The lines
/// of those that did not, and how many there were.
///
/// # Errors
/// As [`run`].
pub fn self_check(scenario: &Scenario) -> Result<(usize, Vec<Failure>), ReadError> {
    let located = |(line, message)| ReadError {
        file: scenario.file.clone(),
        line,
        message,
    };
    let count = scenario.expectations().map_err(located)?;
    let mut survivors = Vec::new();
    for at in 0..count {
        if run_flipped(scenario, Some(at))?.is_empty() {
            survivors.push(Failure {
                line: 0,
                message: format!("expectation {} of {count} cannot fail", at + 1),
            });
        }
    }
    Ok((count, survivors))
}

fn run_flipped(scenario: &Scenario, flipped: Option<usize>) -> Result<Vec<Failure>, ReadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime on this thread can always be built");
    runtime
        .block_on(play(scenario, flipped))
        .map_err(|(line, message)| ReadError {
            file: scenario.file.clone(),
            line,
            message,
        })
}

async fn play(scenario: &Scenario, flipped: Option<usize>) -> Result<Vec<Failure>, Located> {
    let mut world = World::read(scenario)?;
    let (mut failures, mut passed) = (Vec::new(), 0);
    for (verb, argument) in scenario.steps()? {
        if verb.text()? != "expect" {
            world.step(&verb, &argument).await?;
            continue;
        }
        for (key, value) in argument.map()? {
            let name = key.text()?;
            let count = leaves(name, value);
            let here = flipped
                .and_then(|at| at.checked_sub(passed))
                .filter(|at| *at < count);
            passed += count;
            let value = match here {
                Some(at) => &flip(name, value, at),
                None => value,
            };
            if let Some(message) = world.expect(key, value)? {
                failures.push(Failure {
                    line: key.line,
                    message: format!("{name}: {message}"),
                });
            }
        }
    }
    if let World::Informer(world) = world {
        for (line, message) in world.mismatches() {
            failures.push(Failure { line, message });
        }
        world.end().await;
    }
    Ok(failures)
}
