use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The mistakes found so far. All of them are reported, each at its token.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[cfg(test)]
    pub(crate) fn into_list(self) -> Vec<syn::Error> {
        self.0.into_iter().flatten().collect()
    }

    pub(crate) fn into_compile_errors(self) -> TokenStream {
        self.0.map(syn::Error::into_compile_error).unwrap_or_default()
    }
}

/// The known name nearest to this one, as the end of a message.
///
/// The library has the same function for names at run time; a macro crate has no other way to get at it than a crate
/// of its own for twenty lines.
pub(crate) fn nearest(name: &str, known: &[&str]) -> String {
    let ranked = known.iter().map(|other| (distance(name, other), other));
    match ranked.min_by_key(|(distance, _)| *distance) {
        Some((distance, other)) if distance <= name.chars().count().max(3) / 2 => {
            format!("; did you mean `{other}`?")
        }
        _ => format!("; known are {}", list(known)),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// How many letters have to be changed, added or removed to get from one name to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
