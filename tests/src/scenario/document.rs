//! A scenario as it was read from its file.
use super::action::{Action, Step};
use super::notation::{Answer, Exchange, Kind, Matcher};
use super::settings::{self, Settings};
use super::step::steps;
use super::trouble::{Place, Reading, Trouble};
use super::work_verb::{Got, WorkVerb};
use super::yaml::{Node, Value, documents};

/// One scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it begins.
    pub place: Place,
    /// The id of the case that it tells.
    pub case: Option<String>,
    /// What it shows, in one line.
    pub title: String,
    /// What it is made of.
    pub settings: Settings,
    /// What happens.
    pub steps: Vec<Step>,
    /// What is driven.
    pub machine: Machine,
}

/// What a scenario drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A whole informer on scripted sources.
    Informer,
    /// A delta queue, its consumer and an indexer.
    Queue,
    /// A work queue.
    WorkQueue,
    /// A factory of informers.
    Factory,
}

/// The keys of a scenario that are no settings.
pub const KEYS: [&str; 11] = [
    "case",
    "title",
    "source",
    "component",
    "fault",
    "basis",
    "note",
    "drives",
    "server",
    "steps",
    "expect",
];

/// Read all scenarios of a file.
///
/// # Errors
/// The first mistake in it.
pub fn read(text: &str) -> Reading<Vec<Scenario>> {
    let documents = documents(text)?;
    if documents.is_empty() {
        return Err(
            Trouble::new(Place { line: 1, column: 1 }, "the file holds no scenario")
                .suggest("it needs at least: steps: […]"),
        );
    }
    let mut scenarios: Vec<Scenario> = Vec::new();
    for document in &documents {
        if document.is_null() && documents.len() > 1 {
            continue;
        }
        let mut scenario = scenario(document)?;
        if scenario.case.is_none() {
            // Later documents of a file are variants of the first.
            scenario.case = scenarios.first().and_then(|first| first.case.clone());
        }
        scenarios.push(scenario);
    }
    Ok(scenarios)
}

fn scenario(node: &Node) -> Reading<Scenario> {
    let Value::Mapping(entries) = &node.value else {
        return Err(node
            .trouble(format!("a scenario is a mapping, not {}", node.kind()))
            .suggest("it needs at least: steps: […]"));
    };
    let mut scenario = Scenario {
        place: node.place,
        case: None,
        title: String::new(),
        settings: Settings::default(),
        steps: Vec::new(),
        machine: Machine::Informer,
    };
    let mut drives = None;
    let mut last = Vec::new();
    let mut has_steps = false;
    for (key, value) in entries {
        match key.expect_text("a key")? {
            "case" | "id" => scenario.case = Some(value.expect_text("case")?.to_owned()),
            "title" => value.expect_text("title")?.clone_into(&mut scenario.title),
            "source" | "fault" | "basis" | "note" => {}
            "component" => {
                let component = value.expect_text("component")?;
                drives = drives.or(match component {
                    "workqueue" | "work_queue" => Some(Machine::WorkQueue),
                    "factory" => Some(Machine::Factory),
                    "reflector" | "deltafifo" | "indexer" | "sharedinformer" | "resync"
                    | "informer" => None,
                    other => {
                        let known = [
                            "reflector",
                            "deltafifo",
                            "indexer",
                            "sharedinformer",
                            "resync",
                            "factory",
                            "workqueue",
                        ];
                        return Err(Trouble::unknown(value.place, "component", other, known));
                    }
                });
            }
            "drives" => {
                drives = Some(match value.expect_text("drives")? {
                    "informer" => Machine::Informer,
                    "queue" => Machine::Queue,
                    "work_queue" => Machine::WorkQueue,
                    "factory" => Machine::Factory,
                    other => {
                        let known = ["informer", "queue", "work_queue", "factory"];
                        return Err(Trouble::unknown(
                            value.place,
                            "thing to drive",
                            other,
                            known,
                        ));
                    }
                });
            }
            "server" => scenario.settings.server = server(value)?,
            "steps" => {
                has_steps = true;
                scenario.steps = steps(value)?;
            }
            "expect" => last = super::check::checks(value)?,
            name if settings::KEYS.contains(&name) => scenario.settings.set(key, value)?,
            name => {
                let known = KEYS.into_iter().chain(settings::KEYS);
                return Err(Trouble::unknown(key.place, "key", name, known));
            }
        }
    }
    if !last.is_empty() {
        let place = last[0].place;
        if !scenario.settings.server.is_empty() {
            let what = Action::PlayServer;
            scenario.steps.push(Step { place, what });
        }
        scenario.steps.push(Step {
            place,
            what: Action::Expect(last),
        });
    } else if !has_steps {
        return Err(node
            .trouble("the scenario has no steps")
            .suggest("it needs at least: steps: […]"));
    }
    scenario.machine = drives.unwrap_or_else(|| guess(&scenario));
    if !all_steps(&scenario.steps)
        .iter()
        .any(|step| is_expectation(step))
    {
        return Err(node
            .trouble("nothing is expected in this scenario")
            .suggest("add a step: - expect: {store: [a@5]}"));
    }
    Ok(scenario)
}

fn is_expectation(step: &Step) -> bool {
    matches!(
        step.what,
        Action::Expect(_)
            | Action::Exchange(_)
            | Action::Quiet(_)
            | Action::Wait(_)
            | Action::Work(
                WorkVerb::Get(Some(_))
                    | WorkVerb::Len(_)
                    | WorkVerb::Retries(..)
                    | WorkVerb::When(_, Some(_))
            )
    )
}

/// All steps, also those that are repeated.
pub fn all_steps(steps: &[Step]) -> Vec<&Step> {
    let mut all = Vec::new();
    for step in steps {
        all.push(step);
        if let Action::Repeat { steps, .. } = &step.what {
            all.extend(all_steps(steps));
        }
    }
    all
}

fn guess(scenario: &Scenario) -> Machine {
    let steps = all_steps(&scenario.steps);
    let any = |is: fn(&Action) -> bool| steps.iter().any(|step| is(&step.what));
    if any(|action| matches!(action, Action::Work(_))) {
        Machine::WorkQueue
    } else if any(|action| matches!(action, Action::Get(_))) || !scenario.settings.kinds.is_empty()
    {
        Machine::Factory
    } else if any(|action| {
        matches!(
            action,
            Action::Exchange(_) | Action::Frames { .. } | Action::Start { .. }
        )
    }) {
        Machine::Informer
    } else if any(|action| matches!(action, Action::Queue(_) | Action::Drain | Action::Close)) {
        Machine::Queue
    } else {
        Machine::Informer
    }
}

fn server(node: &Node) -> Reading<Vec<Exchange>> {
    let Value::Sequence(items) = &node.value else {
        return Err(node
            .trouble("server must be a list of requests and their answers")
            .suggest("- LIST -> rv=10 [a@5]"));
    };
    let mut exchanges = Vec::new();
    for step in steps(&Node {
        place: node.place,
        value: Value::Sequence(items.clone()),
    })? {
        match step.what {
            Action::Exchange(exchange) => exchanges.push(exchange),
            _ => {
                return Err(Trouble::new(
                    step.place,
                    "only requests and their answers stand in server",
                ));
            }
        }
    }
    Ok(exchanges)
}

impl Scenario {
    /// True when some step has to do with streaming lists.
    pub fn streams(&self) -> bool {
        self.settings.streaming.unwrap_or_else(|| {
            self.exchanges().iter().any(|exchange| {
                exchange.request.kind == Kind::Watch
                    && exchange
                        .request
                        .options
                        .iter()
                        .any(|(name, matcher)| *name == "init" && *matcher != Matcher::Unset)
            })
        })
    }

    /// The page size that the settings, or the first list with a limit, ask for.
    pub fn page_size(&self) -> Option<u32> {
        self.settings.page_size.or_else(|| {
            let exchanges = self.exchanges();
            exchanges.iter().find_map(|exchange| {
                exchange
                    .request
                    .options
                    .iter()
                    .find_map(|(name, matcher)| match matcher {
                        Matcher::Is(limit) if *name == "limit" => limit.parse().ok(),
                        _ => None,
                    })
            })
        })
    }

    fn exchanges(&self) -> Vec<&Exchange> {
        let mut exchanges: Vec<_> = self.settings.server.iter().collect();
        for step in all_steps(&self.steps) {
            match &step.what {
                Action::Exchange(exchange) => exchanges.push(exchange),
                Action::Forever(forever) => exchanges.extend(forever),
                _ => {}
            }
        }
        exchanges
    }

    /// How many expectations there are to flip.
    pub fn expectations(&self) -> usize {
        let mut copy = self.clone();
        let mut count = 0;
        copy.visit(&mut |_| {
            count += 1;
            false
        });
        count
    }

    /// Make one expectation say something wrong. Returns where it is.
    pub fn flip(&mut self, number: usize) -> Place {
        let mut at = 0;
        let mut place = self.place;
        self.visit(&mut |found| {
            at += 1;
            place = found;
            at == number + 1
        });
        place
    }

    /// Go through the expectations, until one shall be flipped.
    fn visit(&mut self, flip: &mut dyn FnMut(Place) -> bool) {
        for exchange in &mut self.settings.server {
            if visit_exchange(exchange, flip) {
                return;
            }
        }
        visit_steps(&mut self.steps, flip);
    }
}

fn visit_steps(steps: &mut [Step], flip: &mut dyn FnMut(Place) -> bool) -> bool {
    for step in steps {
        let place = step.place;
        let done = match &mut step.what {
            Action::Exchange(exchange) => visit_exchange(exchange, flip),
            Action::Expect(checks) => checks.iter_mut().any(|check| {
                let flips = flip(check.place);
                if flips {
                    check.what.flip();
                }
                flips
            }),
            Action::Start { gives }
            | Action::AddHandler { gives, .. }
            | Action::AddIndex { gives, .. }
                if gives != "ok" =>
            {
                flip_text(gives, place, flip)
            }
            Action::Wait(wait) if wait.name.is_none() => flip_text(&mut wait.gives, place, flip),
            Action::Work(WorkVerb::Get(Some(got))) if flip(place) => {
                *got = Got::Key("self-check".to_owned());
                true
            }
            Action::Work(WorkVerb::Len(count) | WorkVerb::Retries(_, count)) if flip(place) => {
                count.negate();
                true
            }
            Action::Work(WorkVerb::When(_, Some(time))) if flip(place) => {
                *time += std::time::Duration::from_micros(1);
                true
            }
            Action::Repeat { steps, .. } => visit_steps(steps, flip),
            _ => false,
        };
        if done {
            return true;
        }
    }
    false
}

fn flip_text(text: &mut String, place: Place, flip: &mut dyn FnMut(Place) -> bool) -> bool {
    let flips = flip(place);
    if flips {
        text.push_str("-self-check");
    }
    flips
}

/// What a request shall be: its kind, and each option.
fn visit_exchange(exchange: &mut Exchange, flip: &mut dyn FnMut(Place) -> bool) -> bool {
    let place = exchange.place;
    if flip(place) {
        exchange.request.kind = match exchange.request.kind {
            Kind::List => Kind::Watch,
            Kind::Watch => Kind::List,
        };
        exchange.answer = Answer::Hang;
        return true;
    }
    exchange.request.options.iter_mut().any(|(_, matcher)| {
        if *matcher == Matcher::Any {
            return false;
        }
        let flips = flip(place);
        if flips {
            *matcher = match matcher {
                Matcher::Is(value) => Matcher::Is(format!("{value}-self-check")),
                Matcher::Unset | Matcher::Any => Matcher::Is("self-check".to_owned()),
            };
        }
        flips
    })
}
