//! Rate limiters, by themselves and in the queue.
use super::super::{
    FastSlow, ItemExponential, Jittered, MaxOf, RateLimiter, TokenBucket, WithMaxWait,
};
use super::{ms, queue, queue_of, secs, take, take_all};
use crate::clock::Timestamp;
use std::sync::Arc;
use std::time::Duration;

fn whens<L: RateLimiter<&'static str>>(limiter: &L, calls: usize) -> Vec<Duration> {
    (0..calls)
        .map(|_| limiter.when(&"a", Timestamp::default()))
        .collect()
}

/// I-W10, I-W13
#[test]
fn c095_exponential_delays_exactly() {
    let limiter = ItemExponential::default();
    let expected: Vec<_> = (0..18).map(|n| ms(5 << n)).chain([secs(1000); 2]).collect();
    assert_eq!(expected[17], Duration::from_millis(655_360));
    assert_eq!(whens(&limiter, 20), expected);
    assert!(whens(&limiter, 1000).iter().all(|wait| *wait == secs(1000)));
    assert_eq!(limiter.retries(&"a"), 1020);
    assert_eq!(limiter.when(&"b", Timestamp::default()), ms(5));
    assert_eq!(limiter.retries(&"b"), 1);
    limiter.forget(&"a");
    assert_eq!(limiter.retries(&"a"), 0);
    assert_eq!(whens(&limiter, 1), [ms(5)]);
    limiter.forget(&"unknown");
}

#[test]
fn c095_no_base_or_cap_overflows() {
    for (base, max) in [
        (Duration::MAX, Duration::MAX),
        (Duration::from_nanos(1), Duration::MAX),
        (secs(60), Duration::from_secs(u64::MAX)),
        (secs(7), secs(3)),
        (Duration::ZERO, secs(1)),
    ] {
        let limiter = ItemExponential::new(base, max);
        let waits = whens(&limiter, 2000);
        assert!(waits.is_sorted(), "never shorter than the one before");
        assert_eq!(waits[0], base.min(max));
        assert_eq!(waits[1999], if base.is_zero() { base } else { max });
    }
}

/// W-W6: the limiter remembers at least the last half of its capacity, and never more than that.
#[test]
fn limiter_memory_is_bounded() {
    let limiter = ItemExponential::with_capacity(ms(5), secs(1000), 100);
    let now = Timestamp::default();
    for key in 0..10_000_u32 {
        limiter.when(&key, now);
        assert!(limiter.remembered() <= 100);
    }
    for key in 9_950..10_000 {
        assert_eq!(limiter.when(&key, now), ms(10), "key {key} is remembered");
    }
    assert_eq!(limiter.when(&0, now), ms(5), "the oldest is forgotten");
    for key in 0..10_000 {
        limiter.forget(&key);
    }
    assert_eq!(limiter.remembered(), 0);
}

/// I-W11
#[test]
fn i_w11_fast_slow_max_of_and_with_max_wait() {
    let limiter = FastSlow::new(ms(5), secs(10), 3);
    assert_eq!(
        whens(&limiter, 5),
        [ms(5), ms(5), ms(5), secs(10), secs(10)]
    );
    assert_eq!(limiter.retries(&"a"), 5);
    limiter.forget(&"a");
    assert_eq!(whens(&limiter, 1), [ms(5)]);

    let limiter = MaxOf::new(vec![
        Arc::new(FastSlow::new(ms(5), secs(3), 3)),
        Arc::new(ItemExponential::new(ms(1), secs(1))),
    ]);
    let expected = [ms(5), ms(5), ms(5), secs(3), secs(3)];
    assert_eq!(whens(&limiter, 5), expected);
    assert_eq!(limiter.retries(&"a"), 5);
    limiter.forget(&"a");
    assert_eq!(limiter.retries(&"a"), 0);

    let limiter = WithMaxWait::new(ItemExponential::default(), ms(30));
    let expected = [ms(5), ms(10), ms(20), ms(30), ms(30)];
    assert_eq!(whens(&limiter, 5), expected);
}

/// I-W12
#[test]
fn i_w12_token_bucket() {
    let bucket = TokenBucket::new(10.0, 100);
    let mut now = Timestamp::default();
    assert!((0..100).all(|_| bucket.reserve(now).is_zero()));
    let waits: Vec<_> = (0..3).map(|_| bucket.reserve(now)).collect();
    assert_eq!(waits, [ms(100), ms(200), ms(300)]);
    now = now + ms(350);
    assert_eq!(bucket.reserve(now), ms(50));
    // Two hours later it is full, and no fuller.
    now = now + secs(7200);
    assert!((0..100).all(|_| bucket.reserve(now).is_zero()));
    assert_eq!(bucket.reserve(now), ms(100));
}

#[test]
fn senseless_buckets_are_brought_into_range() {
    let now = Timestamp::default();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1e300] {
        let bucket = TokenBucket::new(rate, 0);
        assert!(
            bucket.reserve(now).is_zero(),
            "rate {rate}: starts with one token"
        );
        bucket.reserve(now);
        bucket.reserve(now + Duration::MAX);
        bucket.reserve(now + Duration::MAX);
    }
}

#[test]
fn jitter_stretches_by_up_to_its_factor_and_repeats() {
    for seed in 0..20 {
        let limiter = || Jittered::new(ItemExponential::default(), 0.5, seed);
        let waits = whens(&limiter(), 18);
        assert_eq!(waits, whens(&limiter(), 18), "seed {seed}");
        for (n, wait) in waits.iter().enumerate() {
            let plain = ms(5 << n);
            assert!(plain <= *wait && *wait < plain.mul_f64(1.5), "seed {seed}");
        }
    }
    let still = Jittered::new(ItemExponential::default(), f64::NAN, 1);
    assert_eq!(whens(&still, 2), [ms(5), ms(10)]);
}

#[test]
fn c096_forget_clears_the_history_not_the_queue() {
    let (queue, clock) = queue();
    assert_eq!(queue.add_rate_limited("a"), ms(5));
    queue.forget(&"a");
    clock.advance(ms(10));
    let a = take(&queue);
    a.forget();
    queue.add("a");
    assert!(queue.is_empty(), "forget is no done");
    a.done();
    assert_eq!(take_all(&queue), ["a"]);
    queue.forget(&"unknown");
}

#[test]
fn c096_forget_leaves_the_shared_bucket_alone() {
    let limiter = MaxOf::new(vec![
        Arc::new(ItemExponential::default()),
        Arc::new(TokenBucket::new(1.0, 1)),
    ]);
    let (queue, _) = queue_of(|config| config.limiter(Arc::new(limiter)));
    assert_eq!(queue.add_rate_limited("a"), ms(5));
    queue.forget(&"a");
    assert_eq!(queue.retries(&"a"), 0);
    assert_eq!(queue.add_rate_limited("a"), secs(1));
}

#[test]
fn client_gos_default_ties_all_keys_together() {
    let limiter = MaxOf::client_go_default();
    let now = Timestamp::default();
    assert!((0..100).all(|key| limiter.when(&key, now) == ms(5)));
    assert_eq!(limiter.when(&200, now), ms(100));
}

/// A limiter that panics loses no key.
#[test]
fn a_limiter_that_panics_means_a_second() {
    struct Broken;
    impl RateLimiter<&'static str> for Broken {
        fn when(&self, _: &&'static str, _: Timestamp) -> Duration {
            std::panic::resume_unwind(Box::new("a bug in the limiter"))
        }
        fn forget(&self, _: &&'static str) {}
        fn retries(&self, _: &&'static str) -> u32 {
            0
        }
    }
    let (queue, clock) = queue_of(|config| config.limiter(Arc::new(Broken)));
    assert_eq!(queue.add_rate_limited("a"), secs(1));
    clock.advance(secs(1));
    assert_eq!(take_all(&queue), ["a"]);
}
