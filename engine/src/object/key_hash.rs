//! The hash of a key: of its joined text, whether it lies joined in memory or not.
//!
//! The text goes into the hasher in blocks of sixteen bytes, the last of which may overlap the one
//! before. A caller that has namespace and name apart then needs no joined copy: only the one or two
//! blocks around the slash are put together, in registers. (Joining on the stack and reading that
//! back costs more than the whole look-up, since a load can't be served by several stores that are
//! still under way.)
use std::hash::Hasher;

const BLOCK: usize = 16;

/// Hash a key that lies joined in memory.
#[inline]
pub(super) fn joined<H: Hasher>(text: &[u8], state: &mut H) {
    if text.len() < BLOCK {
        return state.write_u128(small(text));
    }
    let last = text.len() - BLOCK;
    let mut at = 0;
    while at < last {
        state.write_u128(block(text, at));
        at += BLOCK;
    }
    state.write_u128(block(text, last));
}

/// Hash the key of `namespace`, which is not empty, and `name`: as [`joined`] does its text.
#[inline]
pub(super) fn parts<H: Hasher>(namespace: &[u8], name: &[u8], state: &mut H) {
    let len = namespace.len() + 1 + name.len();
    if len < BLOCK {
        return state.write_u128(around_slash(namespace, name));
    }
    let block = |at: usize| {
        if let Some(in_name) = at.checked_sub(namespace.len() + 1) {
            block(name, in_name)
        } else if at + BLOCK <= namespace.len() {
            block(namespace, at)
        } else {
            around_slash(&namespace[at..], name)
        }
    };
    let last = len - BLOCK;
    let mut at = 0;
    while at < last {
        state.write_u128(block(at));
        at += BLOCK;
    }
    state.write_u128(block(last));
}

#[inline]
fn block(text: &[u8], at: usize) -> u128 {
    let bytes = text[at..]
        .first_chunk()
        .expect("a block ends inside the text");
    u128::from_le_bytes(*bytes)
}

/// The block that begins with `before`, the end of a namespace, and goes on with slash and name.
#[inline]
fn around_slash(before: &[u8], name: &[u8]) -> u128 {
    let slash = before.len();
    let from_name = match name.first_chunk() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => small(name),
    };
    // What does not fit the block falls out at the top. Two shifts, since one by 128 is not defined.
    small(before) | u128::from(b'/') << (8 * slash) | from_name << 8 << (8 * slash)
}

/// Fewer bytes than a block has, and zeros.
#[inline]
fn small(bytes: &[u8]) -> u128 {
    // From both ends: where the halves overlap, they agree.
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        return u128::from(first) | u128::from(last) << (8 * (len - 8));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u128::from(first) | u128::from(last) << (8 * (len - 4));
    }
    let mut number = 0;
    for &byte in bytes.iter().rev() {
        number = number << 8 | u128::from(byte);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use ahash::RandomState;
    use std::hash::BuildHasher;

    #[test]
    fn a_key_in_parts_has_the_hash_of_its_joined_text_at_any_length() {
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let text = "the-quick-brown-fox-jumps-over-the-lazy-dog-and-runs-into-a-very-long-name";
        for namespace in (1..text.len()).map(|len| &text[..len]) {
            for name in (1..text.len()).map(|len| &text[text.len() - len..]) {
                let (mut apart, mut whole) = (hasher.build_hasher(), hasher.build_hasher());
                parts(namespace.as_bytes(), name.as_bytes(), &mut apart);
                joined(format!("{namespace}/{name}").as_bytes(), &mut whole);
                assert_eq!(apart.finish(), whole.finish(), "{namespace}/{name}");
            }
        }
    }

    #[test]
    fn texts_that_differ_in_one_byte_or_in_length_hash_apart() {
        let hasher = RandomState::with_seeds(1, 2, 3, 4);
        let hash = |text: &[u8]| {
            let mut state = hasher.build_hasher();
            joined(text, &mut state);
            state.finish()
        };
        for len in 1..80 {
            let text: Vec<u8> = (b'0'..).take(len).collect();
            assert_ne!(hash(&text), hash(&text[..len - 1]), "length {len}");
            for at in 0..len {
                let mut other = text.clone();
                other[at] ^= 1;
                assert_ne!(hash(&text), hash(&other), "byte {at} of {len}");
            }
        }
    }
}
