//! Where to go on: the one place that decides which version is asked for next.
use crate::object::{ResourceVersion, Versioning};

/// What a reflector knows of the source's versions.
///
/// `seen` moves only when the queue has accepted what carries it (a list, a delta, a bookmark, a
/// quarantine record), so nothing that was received and not delivered is ever skipped, and under
/// [`Versioning::Decimal`] it never moves back, except by a declared reset.
#[derive(Debug)]
pub(super) struct ResumePoint {
    versioning: Versioning,
    seen: ResourceVersion,
    /// The source could not serve `seen` (expired, or not reached yet): ask for the most recent
    /// state until a list succeeds.
    unavailable: bool,
    /// The watch began at "0", so it first announces the present objects in no order of versions;
    /// none of them may become the resume point.
    synthetic: bool,
}

/// What a list of some version is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It carries no version: a watch could not go on from it.
    WithoutVersion,
    /// It is older than what was seen, and it need not be: ask for the most recent state.
    Refused,
    /// It counts. `reset`: even the most recent state is older, so the source itself went back.
    Accepted { reset: bool },
}

impl ResumePoint {
    pub(super) fn new(versioning: Versioning) -> Self {
        Self {
            versioning,
            seen: ResourceVersion::empty(),
            unavailable: false,
            synthetic: false,
        }
    }

    /// The last version that the queue accepted; empty before the first list.
    pub(super) fn seen(&self) -> &ResourceVersion {
        &self.seen
    }

    /// The version that a list asks for (I-R1): any at first, then what was seen, and the most
    /// recent one while that is unavailable.
    pub(super) fn list_version(&self) -> ResourceVersion {
        if self.unavailable {
            ResourceVersion::empty()
        } else if self.seen.is_empty() || cfg!(informant_mutant = "relist_from_zero") {
            ResourceVersion::zero()
        } else {
            self.seen.clone()
        }
    }

    /// The version that a streaming list asks for: empty at first, for a consistent state.
    pub(super) fn streaming_version(&self) -> ResourceVersion {
        if self.unavailable {
            ResourceVersion::empty()
        } else {
            self.seen.clone()
        }
    }

    /// The asked version cannot be served: ask for the most recent state next.
    pub(super) fn mark_unavailable(&mut self) {
        self.unavailable = true;
    }

    /// Judge a list that was asked for at `asked` and came at `got`.
    pub(super) fn judge(&self, asked: &ResourceVersion, got: &ResourceVersion) -> Verdict {
        if got.is_empty() {
            return Verdict::WithoutVersion;
        }
        if !got.is_older_than(&self.seen, self.versioning) {
            return Verdict::Accepted { reset: false };
        }
        if asked.is_empty() || cfg!(informant_mutant = "older_list_is_a_reset_at_once") {
            Verdict::Accepted { reset: true }
        } else {
            Verdict::Refused
        }
    }

    /// The queue accepted a list of this version.
    pub(super) fn listed(&mut self, version: ResourceVersion) {
        debug_assert!(!version.is_empty(), "judged before");
        self.seen = version;
        self.unavailable = false;
    }

    /// A watch begins at `seen`.
    pub(super) fn watch_begins(&mut self) {
        debug_assert!(!self.seen.is_empty(), "no watch without a version");
        self.synthetic = self.seen == ResourceVersion::zero();
    }

    /// The queue accepted a frame of this version. Returns whether the resume point moved.
    pub(super) fn delivered(&mut self, version: &ResourceVersion, added: bool) -> bool {
        if self.synthetic {
            if added {
                return false;
            }
            self.synthetic = false;
        }
        if version.is_empty() || *version == self.seen || self.is_behind(version) {
            return false;
        }
        self.seen = version.clone();
        true
    }

    /// True when `version` is known to be older than what was seen.
    pub(super) fn is_behind(&self, version: &ResourceVersion) -> bool {
        version.is_older_than(&self.seen, self.versioning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Versioning::{Decimal, Opaque};

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::new(text)
    }

    fn at(text: &str, versioning: Versioning) -> ResumePoint {
        let mut resume = ResumePoint::new(versioning);
        resume.listed(version(text));
        resume.watch_begins();
        resume
    }

    /// I-R17: what is asked for is never older than what was applied.
    #[test]
    fn i_r17_the_resume_point_never_moves_back_by_a_frame() {
        let mut resume = at("10", Decimal);
        assert!(resume.delivered(&version("12"), false));
        for late in ["11", "12", ""] {
            assert!(!resume.delivered(&version(late), false));
        }
        assert_eq!(resume.list_version(), version("12"));
        assert!(
            resume.delivered(&version("x"), false),
            "unknown order never blocks"
        );
    }

    #[test]
    fn opaque_versions_are_taken_as_they_come() {
        let mut resume = at("z9-17", Opaque);
        assert!(resume.delivered(&version("10"), false));
        assert!(resume.delivered(&version("9"), false));
        assert_eq!(resume.seen(), &version("9"));
        assert_eq!(
            resume.judge(&version("9"), &version("1")),
            Verdict::Accepted { reset: false }
        );
    }

    /// I-R6: synthetic additions of a watch from "0" come in any order of versions.
    #[test]
    fn i_r6_synthetic_additions_do_not_move_the_resume_point() {
        let mut resume = at("0", Decimal);
        assert!(!resume.delivered(&version("20"), true));
        assert_eq!(resume.seen(), &version("0"));
        assert!(resume.delivered(&version("15"), false));
        assert!(
            resume.delivered(&version("21"), true),
            "no longer synthetic"
        );
    }

    /// Rule "A list is authority".
    #[test]
    fn only_the_consistent_answer_may_be_older() {
        let resume = at("10", Decimal);
        let judge = |asked: &str, got: &str| resume.judge(&version(asked), &version(got));
        assert_eq!(judge("10", "9"), Verdict::Refused);
        assert_eq!(judge("", "9"), Verdict::Accepted { reset: true });
        assert_eq!(judge("10", "10"), Verdict::Accepted { reset: false });
        assert_eq!(judge("", ""), Verdict::WithoutVersion);
    }
}
