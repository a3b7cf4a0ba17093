//! Statements whose parameters have names.
//!
//! PostgreSQL numbers parameters. Here a statement is written with names, `$thread`, and declared with a struct that has a field
//! for each; the compiler puts the numbers in, and refuses a name in the text that is no field and a field that is not in the
//! text. Nothing of this is left at run time.

/// Declares the parameters of statements: a struct with a field for each, and their types.
macro_rules! params {
    ($(#[$doc:meta])* struct $name:ident { $($param:ident: $kind:ident),+ $(,)? }) => {
        $(#[$doc])*
        struct $name<'a> {
            $($param: &'a (dyn tokio_postgres::types::ToSql + Sync)),+
        }

        impl<'a> $name<'a> {
            const NAMES: &'static [&'static str] = &[$(stringify!($param)),+];

            /// A statement whose names are these.
            fn bind(self, sql: &'a str) -> $crate::db::Statement<'a> {
                use tokio_postgres::types::Type;
                $crate::db::Statement { sql, params: vec![$((self.$param, Type::$kind)),+] }
            }
        }
    };
}

/// The text of a statement, with the numbers of the parameters that a struct declares instead of their names.
macro_rules! numbered {
    ($params:ident, $text:expr) => {{
        const NAMED: &str = $text;
        const BYTES: [u8; $crate::named::length(NAMED, $params::NAMES)] =
            $crate::named::number(NAMED, $params::NAMES);
        const TEXT: &str = match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("a statement is text"),
        };
        TEXT
    }};
}

/// Declares a statement with its parameters.
///
/// ```ignore
/// statement! {
///     /// Forgets a thread.
///     struct Forget { thread: TEXT }
///     "DELETE FROM checkpoints WHERE thread_id = $thread"
/// }
/// db.read(Forget { thread: &thread }.into());
/// ```
macro_rules! statement {
    ($(#[$doc:meta])* struct $name:ident { $($param:ident: $kind:ident),+ $(,)? } $text:expr) => {
        $crate::named::params! {
            $(#[$doc])*
            struct $name { $($param: $kind),+ }
        }

        impl $name<'_> {
            const SQL: &'static str = {
                assert!(
                    $crate::named::uses_all($text, Self::NAMES),
                    "a parameter is not in the statement"
                );
                $crate::named::numbered!($name, $text)
            };
        }

        impl<'a> From<$name<'a>> for $crate::db::Statement<'a> {
            fn from(params: $name<'a>) -> Self {
                params.bind($name::SQL)
            }
        }
    };
}

pub(crate) use {numbered, params, statement};

/// How long a statement is with numbers instead of names.
///
/// # Panics
/// A name in the text is none of `names`. It is called when this crate is compiled.
pub(crate) const fn length(text: &str, names: &[&str]) -> usize {
    let text = text.as_bytes();
    let (mut at, mut length) = (0, 0);
    while at < text.len() {
        length += 1;
        if text[at] == b'$' {
            let end = end_of_name(text, at + 1);
            length += if position(text, at + 1, end, names) < 9 { 1 } else { 2 };
            at = end;
        } else {
            at += 1;
        }
    }
    length
}

/// Whether each of `names` is in the text.
pub(crate) const fn uses_all(text: &str, names: &[&str]) -> bool {
    let text = text.as_bytes();
    let (mut at, mut used) = (0, 0_u64);
    while at < text.len() {
        let end = end_of_name(text, at + 1);
        if text[at] == b'$' {
            used |= 1 << position(text, at + 1, end, names);
        }
        at += 1;
    }
    used.count_ones() as usize == names.len()
}

/// The statement with numbers instead of names.
pub(crate) const fn number<const LENGTH: usize>(text: &str, names: &[&str]) -> [u8; LENGTH] {
    let text = text.as_bytes();
    let mut numbered = [0; LENGTH];
    let (mut at, mut to) = (0, 0);
    while at < text.len() {
        numbered[to] = text[at];
        to += 1;
        if text[at] == b'$' {
            let end = end_of_name(text, at + 1);
            let number = position(text, at + 1, end, names) + 1;
            if number >= 10 {
                numbered[to] = b'0' + (number / 10) as u8;
                to += 1;
            }
            numbered[to] = b'0' + (number % 10) as u8;
            to += 1;
            at = end;
        } else {
            at += 1;
        }
    }
    numbered
}

const fn end_of_name(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && (text[at].is_ascii_lowercase() || text[at] == b'_') {
        at += 1;
    }
    at
}

const fn position(text: &[u8], from: usize, end: usize, names: &[&str]) -> usize {
    let mut nth = 0;
    while nth < names.len() {
        let name = names[nth].as_bytes();
        let mut same = 0;
        while same < name.len() && from + same < end && name[same] == text[from + same] {
            same += 1;
        }
        if same == name.len() && from + same == end {
            return nth;
        }
        nth += 1;
    }
    panic!("a name in the statement is none of its parameters")
}

#[cfg(test)]
mod tests {
    statement! {
        struct Find { thread: TEXT, thread_ids: TEXT_ARRAY, c: INT4, d: INT4, e: INT4, f: INT4, g: INT4, h: INT4, i: INT4, j: INT4 }
        "SELECT $j + $thread || $thread_ids::text[], $c, $d, $e, $f, $g, $h, $i, $thread"
    }

    #[test]
    fn names_become_numbers_in_the_order_of_the_fields() {
        assert_eq!(Find::SQL, "SELECT $10 + $1 || $2::text[], $3, $4, $5, $6, $7, $8, $9, $1");
        let n = &0_i32;
        let find =
            Find { thread: &"t", thread_ids: n, c: n, d: n, e: n, f: n, g: n, h: n, i: n, j: n };
        assert_eq!(crate::db::Statement::from(find).params.len(), 10);
    }
}
