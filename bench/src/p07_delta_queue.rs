//! P7: a million inputs over 50,000 keys through the delta queue, from one thread to another.
use crate::changes::Changes;
use crate::contest::Contest;
use crate::peers::CLIENT_GO;
use crate::peers::client_go::ClientGo;
use crate::pod::{Pod, World};
use crate::row::{EVENTS, OURS, Row};
use crate::run::Run;
use informant::ObjectKey;
use informant::delta::{Compaction, DeltaQueue, QueueConfig, SourceId, Step};
use std::hint::black_box;
use std::thread;
use std::time::Instant;

const KEYS: usize = 50_000;

pub(crate) fn run(run: &mut Run) {
    let inputs = if run.quick() { 200_000 } else { 1_000_000 };
    let mut go = ClientGo::start(KEYS);
    for (what, compaction, peer, factor) in [
        (
            "coalescing, against DeltaFIFO",
            Compaction::FirstAndLast,
            "delta",
            5.0,
        ),
        (
            "every delta kept, against DeltaFIFO",
            Compaction::KeepAll,
            "delta",
            0.0,
        ),
        (
            "every delta kept, against RealFIFO",
            Compaction::KeepAll,
            "real",
            3.0,
        ),
    ] {
        let mut changes = Changes::of(&World::new(KEYS));
        let mut contest = Contest::new();
        contest.arm(OURS, || passed(&mut changes, inputs, compaction));
        contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
            let command = format!("fifo {peer} {inputs}");
            Box::new(move || {
                let figures = go.figures(&command);
                [figures[0], figures[1], figures[2]]
            })
        });
        let standing = contest.run(run.rounds());
        let counts = |name| {
            let count = |k| standing.figure(name, k).map(|figure| figure.median);
            Some(format!(
                "{name} accepted {} and delivered {}",
                count(1)?,
                count(2)?
            ))
        };
        let counts: Vec<_> = [OURS, CLIENT_GO].into_iter().filter_map(counts).collect();
        let row = Row::of(
            format!("{inputs} inputs, {what}"),
            KEYS,
            &standing,
            0,
            EVENTS,
        );
        let row = row.with_note(counts.join("; "));
        run.add(if factor > 0.0 {
            row.at_least(factor, CLIENT_GO)
        } else {
            row
        });
    }
}

/// Inputs a second, inputs accepted, deltas delivered. The objects exist beforehand, on both sides;
/// making their keys is part of it.
pub(crate) fn passed(changes: &mut Changes, inputs: usize, compaction: Compaction) -> [f64; 3] {
    let queue = DeltaQueue::<Pod>::new(QueueConfig {
        compaction,
        ..QueueConfig::default()
    });
    let producer = queue.producer(SourceId(0));
    let objects: Vec<_> = (0..inputs).map(|_| changes.next()).collect();
    let began = Instant::now();
    let (accepted, delivered) = thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let (mut accepted, mut delivered, mut sum) = (0, 0, 0_u64);
            while let Ok(batch) = queue.drain_blocking() {
                accepted += batch.inputs;
                for step in &batch.steps {
                    let Step::Changes(groups) = step else {
                        continue;
                    };
                    for delta in groups.iter().flat_map(|group| &group.deltas) {
                        delivered += 1;
                        sum = sum.wrapping_add(delta.object().map_or(0, |pod| pod.version));
                    }
                }
            }
            black_box(sum);
            (accepted, delivered)
        });
        for mut object in objects {
            let pod = &object.object;
            object.meta.key = ObjectKey::new(&pod.namespace, &pod.name).expect("a good key");
            producer
                .try_updated(object)
                .expect("the queue is open and has no bound");
        }
        queue.close();
        consumer.join().expect("the consumer does not panic")
    });
    let rate = inputs as f64 / began.elapsed().as_secs_f64();
    [rate, accepted as f64, f64::from(delivered)]
}
