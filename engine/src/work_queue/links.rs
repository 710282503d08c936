//! Lists whose links live in the elements: taking one out of the middle costs two writes.

/// No element.
pub(super) const NONE: u32 = u32::MAX;

/// Where an element stands in the list that holds it. An element is in one list at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    before: u32,
    after: u32,
}

impl Links {
    pub(super) const UNLINKED: Self = Self {
        before: NONE,
        after: NONE,
    };

    /// Of an element that is in no list: the next that is in none either.
    pub(super) const fn to(after: u32) -> Self {
        Self {
            before: NONE,
            after,
        }
    }

    pub(super) const fn after(self) -> u32 {
        self.after
    }
}

/// What holds the elements.
pub(super) trait Linked {
    fn links(&mut self, id: u32) -> &mut Links;
}

/// A list of elements of one arena.
#[derive(Debug)]
pub(super) struct List {
    front: u32,
    back: u32,
}

impl List {
    pub(super) const fn new() -> Self {
        Self {
            front: NONE,
            back: NONE,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.front == NONE
    }

    pub(super) fn front(&self) -> Option<u32> {
        (self.front != NONE).then_some(self.front)
    }

    #[inline]
    pub(super) fn push_back(&mut self, arena: &mut impl Linked, id: u32) {
        *arena.links(id) = Links {
            before: self.back,
            after: NONE,
        };
        match self.back {
            NONE => self.front = id,
            back => arena.links(back).after = id,
        }
        self.back = id;
    }

    #[inline]
    pub(super) fn pop_front(&mut self, arena: &mut impl Linked) -> Option<u32> {
        let id = self.front()?;
        self.remove(arena, id);
        Some(id)
    }

    #[inline]
    pub(super) fn remove(&mut self, arena: &mut impl Linked, id: u32) {
        let Links { before, after } = std::mem::replace(arena.links(id), Links::UNLINKED);
        match before {
            NONE => self.front = after,
            before => arena.links(before).after = after,
        }
        match after {
            NONE => self.back = before,
            after => arena.links(after).before = before,
        }
    }
}
