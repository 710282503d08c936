//! The tasks and threads of one informer: hired, let go, and all of them joined at the end.
use crate::delta::HandlerId;
use crate::stop::StopToken;
use crate::sync::{Mutex, block_on};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

pub(super) type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Crew {
    state: Mutex<State>,
}

struct State {
    threads: Vec<JoinHandle<()>>,
    tasks: Tasks,
}

enum Tasks {
    /// Nothing runs yet: handlers wait here for the start.
    Waiting(BTreeMap<HandlerId, Job>),
    Working(Handle, JoinSet<()>),
    Ended,
}

impl Crew {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                threads: Vec::new(),
                tasks: Tasks::Waiting(BTreeMap::new()),
            }),
        }
    }

    /// Run a handler's job on a task: now, or at the start.
    pub(super) fn hire(&self, id: HandlerId, job: Job) {
        // What is not run is dropped after the lock: it holds a user's handler.
        let _refused = {
            let mut state = self.state.lock();
            match &mut state.tasks {
                Tasks::Waiting(jobs) => jobs.insert(id, job),
                Tasks::Working(runtime, tasks) => {
                    while tasks.try_join_next().is_some() {}
                    tasks.spawn_on(job, runtime);
                    None
                }
                Tasks::Ended => Some(job),
            }
        };
    }

    /// Run a handler's job on a thread of its own, from now on.
    pub(super) fn hire_thread(&self, name: &str, job: Job) -> io::Result<()> {
        // An asynchronous handler may use what needs the runtime: timers, sockets, other tasks.
        let runtime = Handle::try_current().ok().or_else(|| self.runtime());
        let thread = std::thread::Builder::new()
            .name(format!("informant-{name}"))
            .spawn(move || {
                let _entered = runtime.as_ref().map(Handle::enter);
                block_on(job);
            })?;
        let late = {
            let mut state = self.state.lock();
            state.threads.retain(|thread| !thread.is_finished());
            if matches!(state.tasks, Tasks::Ended) {
                Some(thread)
            } else {
                state.threads.push(thread);
                None
            }
        };
        // The informer has stopped meanwhile, so the mailbox is closed and the thread ends at once.
        if let Some(late) = late {
            let _panicked = late.join();
        }
        Ok(())
    }

    fn runtime(&self) -> Option<Handle> {
        match &self.state.lock().tasks {
            Tasks::Working(runtime, _) => Some(runtime.clone()),
            Tasks::Waiting(_) | Tasks::Ended => None,
        }
    }

    /// Drop the job of a handler that was removed before the start.
    pub(super) fn dismiss(&self, id: HandlerId) {
        let _dismissed = match &mut self.state.lock().tasks {
            Tasks::Waiting(jobs) => jobs.remove(&id),
            Tasks::Working(..) | Tasks::Ended => None,
        };
    }

    /// Begin to work on `runtime`: the jobs that wait, and these.
    pub(super) fn start(&self, runtime: &Handle, jobs: Vec<Job>) {
        let mut state = self.state.lock();
        let Tasks::Waiting(waiting) = &mut state.tasks else {
            return;
        };
        let mut tasks = JoinSet::new();
        for job in std::mem::take(waiting).into_values().chain(jobs) {
            tasks.spawn_on(job, runtime);
        }
        state.tasks = Tasks::Working(runtime.clone(), tasks);
    }

    /// Drop the jobs that wait: there will be no start.
    pub(super) fn abandon(&self) {
        let _abandoned = std::mem::replace(&mut self.state.lock().tasks, Tasks::Ended);
    }

    /// Refuse further work and wait until all that runs has ended; the handlers' mailboxes are
    /// closed. Once `abort` is given, tasks are cancelled at their next await, and threads that are
    /// inside a call are left to end with it.
    pub(super) async fn end(&self, abort: &StopToken) {
        let (tasks, threads) = {
            let mut state = self.state.lock();
            let tasks = std::mem::replace(&mut state.tasks, Tasks::Ended);
            (tasks, std::mem::take(&mut state.threads))
        };
        if let Tasks::Working(_, mut tasks) = tasks {
            loop {
                tokio::select! {
                    biased;
                    ended = tasks.join_next() => if ended.is_none() { break },
                    () = abort.stopped(), if !tasks.is_empty() => {
                        tasks.abort_all();
                        while tasks.join_next().await.is_some() {}
                    }
                }
            }
        }
        // The caller has waited for the handlers' ends, and a thread ends right after its handler.
        for thread in threads {
            if !abort.is_stopped() || thread.is_finished() {
                let _panicked = thread.join();
            }
        }
    }

    /// Tasks and threads that have not ended, and jobs that wait.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        let mut state = self.state.lock();
        state.threads.retain(|thread| !thread.is_finished());
        let tasks = match &mut state.tasks {
            Tasks::Waiting(jobs) => jobs.len(),
            Tasks::Working(_, tasks) => {
                while tasks.try_join_next().is_some() {}
                tasks.len()
            }
            Tasks::Ended => 0,
        };
        tasks + state.threads.len()
    }
}
