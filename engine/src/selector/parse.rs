//! The grammar: requirements joined by commas, each read from left to right, one token ahead.
use super::{Operator, Requirement, SelectorError};

/// Longest name and value of a label, in bytes.
const NAME_LEN: usize = 63;
/// Longest prefix (before the slash) of a label's name, in bytes.
const PREFIX_LEN: usize = 253;

pub(super) fn selector(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { text, at: 0 };
    let mut requirements = Vec::new();
    if parser.peek() == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(parser.requirement()?);
        match parser.next() {
            (_, Token::End) => return Ok(requirements),
            (_, Token::Symbol(",")) => {}
            (position, token) => {
                return Err(unexpected(position, token, "a comma or the end"));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// One of `, ( ) ! = == != < >`.
    Symbol(&'a str),
    End,
}

fn unexpected(position: usize, found: Token<'_>, expected: &str) -> SelectorError {
    let reason = match found {
        Token::Symbol("<" | ">") => {
            "the comparisons \"<\" and \">\" are not supported here".to_owned()
        }
        Token::Word(text) | Token::Symbol(text) => format!("found {text:?}, expected {expected}"),
        Token::End => format!("found the end, expected {expected}"),
    };
    SelectorError { position, reason }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The next token and where it begins; white space before it is skipped.
    fn next(&mut self) -> (usize, Token<'a>) {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n']);
        let position = self.text.len() - rest.len();
        let token = token(rest);
        self.at = position
            + match token {
                Token::Word(text) | Token::Symbol(text) => text.len(),
                Token::End => 0,
            };
        (position, token)
    }

    fn peek(&self) -> Token<'a> {
        Parser { ..*self }.next().1
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let (position, token) = self.next();
        match token {
            Token::Symbol("!") => Ok(Requirement::does_not_exist(self.key()?)),
            // "in" and "notin" are words of the grammar where a name is due.
            Token::Word(name) if !matches!(name, "in" | "notin") => {
                check_name(position, name)?;
                self.condition(name)
            }
            token => Err(unexpected(position, token, "the name of a label or \"!\"")),
        }
    }

    fn key(&mut self) -> Result<&'a str, SelectorError> {
        match self.next() {
            (position, Token::Word(name)) if !matches!(name, "in" | "notin") => {
                check_name(position, name)?;
                Ok(name)
            }
            (position, token) => Err(unexpected(position, token, "the name of a label")),
        }
    }

    fn condition(&mut self, key: &str) -> Result<Requirement, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement::exists(key));
        }
        let (position, token) = self.next();
        let (operator, values) = match token {
            Token::Symbol("=" | "==") => (Operator::In, vec![self.value()?]),
            Token::Symbol("!=") => (Operator::NotIn, vec![self.value()?]),
            Token::Word("in") => (Operator::In, self.set()?),
            Token::Word("notin") => (Operator::NotIn, self.set()?),
            token => {
                let expected = "\"=\", \"==\", \"!=\", \"in\", \"notin\", a comma or the end";
                return Err(unexpected(position, token, expected));
            }
        };
        Ok(Requirement::new(key, operator, values))
    }

    /// A value, which may be empty: then the token that ends it stays.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::Word(_) => {}
            Token::End | Token::Symbol("," | ")") => return Ok(String::new()),
            Token::Symbol(_) => {
                let (position, token) = self.next();
                return Err(unexpected(position, token, "a value"));
            }
        }
        let (position, token) = self.next();
        let Token::Word(value) = token else {
            unreachable!("the token is the one that was looked at");
        };
        check_value(position, value)?;
        Ok(value.to_owned())
    }

    /// `(a, b)`; an empty member is the empty value, but an empty pair of brackets is an error.
    fn set(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            (_, Token::Symbol("(")) => {}
            (position, token) => return Err(unexpected(position, token, "\"(\"")),
        }
        if self.peek() == Token::Symbol(")") {
            let (position, token) = self.next();
            return Err(unexpected(position, token, "at least one value"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.next() {
                (_, Token::Symbol(")")) => return Ok(values),
                (_, Token::Symbol(",")) => {}
                (position, token) => {
                    return Err(unexpected(position, token, "a comma or \")\""));
                }
            }
        }
    }
}

fn token(rest: &str) -> Token<'_> {
    if rest.is_empty() {
        return Token::End;
    }
    for symbol in ["==", "!=", "=", "!", ",", "(", ")", "<", ">"] {
        if let Some(after) = rest.strip_prefix(symbol) {
            return Token::Symbol(&rest[..rest.len() - after.len()]);
        }
    }
    let ends = |c: char| {
        matches!(
            c,
            ' ' | '\t' | '\r' | '\n' | '=' | '!' | ',' | '(' | ')' | '<' | '>'
        )
    };
    Token::Word(&rest[..rest.find(ends).unwrap_or(rest.len())])
}

/// `[prefix/]name`: the prefix a DNS subdomain, the name as a value but not empty.
fn check_name(position: usize, text: &str) -> Result<(), SelectorError> {
    let fail = |reason: &str| {
        Err(SelectorError {
            position,
            reason: format!("{text:?} is no name of a label: {reason}"),
        })
    };
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(prefix) = prefix {
        let part_is_good = |part: &str| {
            let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
            part.bytes().all(|b| inner(b) || b == b'-')
                && part.bytes().next().is_some_and(inner)
                && part.bytes().next_back().is_some_and(inner)
        };
        if prefix.len() > PREFIX_LEN || !prefix.split('.').all(part_is_good) {
            return fail("the part before the slash is no DNS name");
        }
    }
    if name.is_empty() {
        return fail("the part after the slash is empty");
    }
    is_word(name).or_else(fail)
}

fn check_value(position: usize, value: &str) -> Result<(), SelectorError> {
    is_word(value).map_err(|reason| SelectorError {
        position,
        reason: format!("{value:?} is no value of a label: {reason}"),
    })
}

fn is_word(text: &str) -> Result<(), &'static str> {
    let end = |b: u8| b.is_ascii_alphanumeric();
    if text.len() > NAME_LEN {
        return Err("it is longer than 63 bytes");
    }
    if !text
        .bytes()
        .all(|b| end(b) || matches!(b, b'-' | b'_' | b'.'))
    {
        return Err("only letters, digits, '-', '_' and '.' are allowed");
    }
    if !(text.bytes().next().is_some_and(end) && text.bytes().next_back().is_some_and(end)) {
        return Err("it must begin and end with a letter or digit");
    }
    Ok(())
}
