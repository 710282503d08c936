//! A transport that answers what the script says, and notes what it is asked.
use super::notation::{Frame, ListAnswer, Request, Thing, Thought, WatchAnswer, duration};
use super::yaml::{Located, Node};
use futures_core::Stream;
use informant::source::{
    BadObject, ListOptions, ListPage, ListWatch, SourceError, VersionMatch, WatchEvent,
    WatchOptions, WatchStream,
};
use informant::{Incoming, ResourceVersion, Versioning};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// An answer, how often it is given, and after how long.
#[derive(Clone, Debug)]
struct Scripted<A> {
    line: usize,
    expected: Request,
    answer: A,
    times: usize,
    delay: Duration,
}

#[derive(Default)]
struct Script {
    lists: VecDeque<Scripted<ListAnswer>>,
    watches: VecDeque<Scripted<WatchAnswer>>,
    requests: Vec<Request>,
    mismatches: Vec<(usize, String)>,
    live: Option<UnboundedSender<Frame>>,
}

/// The scripted transport. Clones are one transport.
#[derive(Clone)]
pub(super) struct Transport {
    script: Arc<Mutex<Script>>,
    open: Arc<AtomicUsize>,
    pub(super) versioning: Versioning,
    pub(super) streaming: bool,
}

impl Transport {
    /// Lines such as `LIST(rv=0) -> rv=10 [a@5]` and `WATCH -> +b@12, EOF`, the answers of each
    /// kind in order; ` xN` or ` forever` at the end repeats one, `after 2s` delays it.
    pub(super) fn read(
        node: Option<&Node>,
        versioning: Versioning,
        streaming: bool,
    ) -> Result<Self, Located> {
        let mut script = Script::default();
        for item in node.map(Node::items).unwrap_or_default() {
            let line = item.line;
            let text = item.text()?;
            let (request, answer) = text.split_once("->").ok_or((
                line,
                format!("{text:?} has no answer; write LIST -> rv=10 [a@5] or WATCH -> +b@12, EOF"),
            ))?;
            let expected = Request::parse(request.trim()).map_err(|error| (line, error))?;
            let (answer, times) = repetition(answer.trim());
            let (answer, delay) = delay(answer).map_err(|error| (line, error))?;
            if expected.verb == "LIST" {
                let answer = ListAnswer::parse(answer).map_err(|error| (line, error))?;
                script.lists.push_back(Scripted {
                    line,
                    expected,
                    answer,
                    times,
                    delay,
                });
            } else {
                let answer = WatchAnswer::parse(answer).map_err(|error| (line, error))?;
                script.watches.push_back(Scripted {
                    line,
                    expected,
                    answer,
                    times,
                    delay,
                });
            }
        }
        Ok(Self {
            script: Arc::new(Mutex::new(script)),
            open: Arc::default(),
            versioning,
            streaming,
        })
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.script().requests.clone()
    }

    pub(super) fn mismatches(&self) -> Vec<(usize, String)> {
        self.script().mismatches.clone()
    }

    pub(super) fn open_watches(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Send frames on the watch that is open.
    pub(super) fn send(&self, frames: Vec<Frame>) -> Result<(), String> {
        let script = self.script();
        let live = script
            .live
            .as_ref()
            .ok_or("no watch is open to send this on")?;
        for frame in frames {
            live.send(frame)
                .map_err(|_| "no watch is open to send this on")?;
        }
        Ok(())
    }
}

fn repetition(text: &str) -> (&str, usize) {
    if let Some(rest) = text.strip_suffix(" forever") {
        return (rest.trim(), usize::MAX);
    }
    if let Some((rest, count)) = text.rsplit_once(" x")
        && let Ok(count) = count.parse()
    {
        return (rest.trim(), count);
    }
    (text, 1)
}

fn delay(text: &str) -> Result<(&str, Duration), String> {
    match text
        .strip_prefix("after ")
        .and_then(|rest| rest.split_once(' '))
    {
        Some((time, rest)) => Ok((rest.trim(), duration(time)?)),
        None => Ok((text, Duration::ZERO)),
    }
}

/// The next answer of one kind.
fn next<A: Clone>(
    answers: &mut VecDeque<Scripted<A>>,
    mismatches: &mut Vec<(usize, String)>,
    request: &Request,
) -> Option<(A, Duration)> {
    let first = answers.front_mut()?;
    if !first.expected.describes(request) {
        let text = format!(
            "the script expects {} here, the request was {request}",
            first.expected
        );
        mismatches.push((first.line, text));
    }
    let answer = (first.answer.clone(), first.delay);
    first.times = first
        .times
        .saturating_sub(usize::from(first.times != usize::MAX));
    if first.times == 0 {
        answers.pop_front();
    }
    Some(answer)
}

fn list_request(options: &ListOptions) -> Request {
    let mut named = vec![("rv".to_owned(), options.resource_version.to_string())];
    let selectors = &options.selectors;
    let matching = options.version_match.map(|m| match m {
        VersionMatch::NotOlderThan => "NotOlderThan".to_owned(),
        VersionMatch::Exact => "Exact".to_owned(),
    });
    let optional = [
        ("match", matching),
        ("limit", options.limit.map(|limit| limit.to_string())),
        ("cont", options.continue_token.clone()),
        ("namespace", selectors.namespace.clone()),
        ("labels", selectors.labels.clone()),
        ("fields", selectors.fields.clone()),
        ("shard", selectors.shard.clone()),
    ];
    named.extend(
        optional
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?))),
    );
    Request {
        verb: "LIST".to_owned(),
        options: named,
    }
}

fn watch_request(options: &WatchOptions) -> Request {
    let mut named = vec![("rv".to_owned(), options.resource_version.to_string())];
    let selectors = &options.selectors;
    let flag = |on: bool| on.then(|| "true".to_owned());
    let optional = [
        ("init", flag(options.send_initial_events)),
        ("bookmarks", flag(options.allow_bookmarks)),
        ("namespace", selectors.namespace.clone()),
        ("labels", selectors.labels.clone()),
        ("fields", selectors.fields.clone()),
        ("shard", selectors.shard.clone()),
    ];
    named.extend(
        optional
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?))),
    );
    Request {
        verb: "WATCH".to_owned(),
        options: named,
    }
}

fn item(thought: &Thought) -> Result<Incoming<Thing>, BadObject> {
    if !thought.bad {
        return Ok(thought.incoming());
    }
    let meta = thought.incoming().meta;
    Err(BadObject {
        key: Some(meta.key),
        uid: meta.uid,
        resource_version: meta.resource_version,
        reason: "it cannot be decoded".to_owned(),
    })
}

impl ListWatch for Transport {
    type Object = Thing;

    async fn list(&self, options: ListOptions) -> Result<ListPage<Thing>, SourceError> {
        let request = list_request(&options);
        let answer = {
            let script = &mut *self.script();
            script.requests.push(request.clone());
            next(&mut script.lists, &mut script.mismatches, &request)
        };
        let Some((answer, delay)) = answer else {
            // The script has nothing more to say.
            return std::future::pending().await;
        };
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        match answer {
            ListAnswer::Hang => std::future::pending().await,
            ListAnswer::Error(error) => Err(error),
            ListAnswer::Page {
                version,
                items,
                token,
            } => Ok(ListPage {
                resource_version: ResourceVersion::new(&version),
                continue_token: token,
                items: items.iter().map(item).collect(),
            }),
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        let request = watch_request(&options);
        let (live, received) = unbounded_channel();
        let answer = {
            let script = &mut *self.script();
            script.requests.push(request.clone());
            let answer = next(&mut script.watches, &mut script.mismatches, &request);
            if !matches!(
                answer,
                Some((WatchAnswer::Refused(_) | WatchAnswer::Hang, _))
            ) {
                script.live = Some(live);
            }
            answer
        };
        let (answer, delay) = answer.unwrap_or((WatchAnswer::Frames(Vec::new()), Duration::ZERO));
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        match answer {
            WatchAnswer::Hang => std::future::pending().await,
            WatchAnswer::Refused(error) => Err(error),
            WatchAnswer::Frames(frames) => {
                self.open.fetch_add(1, Ordering::SeqCst);
                Ok(Box::pin(Frames {
                    scripted: frames.into(),
                    live: received,
                    sleep: None,
                    over: false,
                    open: self.open.clone(),
                }))
            }
        }
    }

    fn versioning(&self) -> Versioning {
        self.versioning
    }

    fn supports_streaming_list(&self) -> bool {
        self.streaming
    }
}

/// The frames of one watch: what the script says, then what is sent live.
struct Frames {
    scripted: VecDeque<Frame>,
    live: UnboundedReceiver<Frame>,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    over: bool,
    open: Arc<AtomicUsize>,
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stream for Frames {
    type Item = Result<WatchEvent<Thing>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.over {
                return Poll::Ready(None);
            }
            if let Some(sleep) = &mut this.sleep {
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.sleep = None;
            }
            let frame = match this.scripted.pop_front() {
                Some(frame) => frame,
                None => match this.live.poll_recv(context) {
                    Poll::Ready(Some(frame)) => frame,
                    // A newer watch is the live one; this one stays silent.
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                },
            };
            return Poll::Ready(Some(Ok(match frame {
                Frame::Added(object) => event(&object, WatchEvent::Added, false),
                Frame::Modified(object) => event(&object, WatchEvent::Modified, false),
                Frame::Deleted(object) => event(&object, WatchEvent::Deleted, true),
                Frame::Bookmark(version, initial_events_end) => WatchEvent::Bookmark {
                    resource_version: ResourceVersion::new(&version),
                    initial_events_end,
                },
                Frame::Foreign(description) => WatchEvent::Foreign { description },
                Frame::Wait(time) => {
                    this.sleep = Some(Box::pin(tokio::time::sleep(time)));
                    continue;
                }
                Frame::End => {
                    this.over = true;
                    return Poll::Ready(None);
                }
                Frame::Error(error) => {
                    this.over = true;
                    return Poll::Ready(Some(Err(error)));
                }
            })));
        }
    }
}

fn event(
    thought: &Thought,
    good: impl FnOnce(Incoming<Thing>) -> WatchEvent<Thing>,
    deleted: bool,
) -> WatchEvent<Thing> {
    match item(thought) {
        Ok(object) => good(object),
        Err(object) => WatchEvent::Bad { object, deleted },
    }
}
