//! Values cut to a size that a page can show. What is left out is asked for by its path.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Number, Value as Json};

/// A value, or the beginning of one.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Outline {
    /// Null.
    Null,
    /// True or false.
    Boolean {
        /// The value.
        value: bool,
    },
    /// A number.
    Number {
        /// The value; as a text if a client that reads numbers as doubles would lose a part of it.
        value: Json,
    },
    /// A text, from the character that was asked for.
    String {
        /// The characters that are here.
        value: String,
        /// How many characters it has in all.
        length: usize,
    },
    /// A list.
    List {
        /// How many items it has in all.
        length: usize,
        /// The position of the first item that is here.
        offset: usize,
        /// The items that are here.
        items: Vec<Outline>,
    },
    /// An object.
    Object {
        /// How many fields it has in all.
        length: usize,
        /// The position of the first field that is here.
        offset: usize,
        /// The names of the fields that are here.
        keys: Vec<String>,
        /// Their values.
        items: Vec<Outline>,
    },
}

/// Parts of a value that one answer has.
const PARTS_MAX: usize = 500;
/// Items of one list, or fields of one object.
const ITEMS_MAX: usize = 100;
/// Characters of all texts of one answer.
const CHARACTERS_MAX: usize = 64_000;
/// Characters of one text; of the one that was asked for there are more.
const TEXT_MAX: usize = 2_000;
/// The largest whole number that is the same as a double.
const SAFE: i64 = 9_007_199_254_740_991;

/// How much there is room for.
struct Room {
    parts: usize,
    characters: usize,
}

impl Outline {
    /// The value from this item or character on.
    pub(crate) fn of(value: &Json, offset: usize) -> Self {
        let mut room = Room { parts: PARTS_MAX, characters: CHARACTERS_MAX };
        match value {
            // Nothing else needs the room.
            Json::String(text) if offset > 0 => Self::text(text, offset, CHARACTERS_MAX / 4),
            value => room.outline(value, offset),
        }
    }

    fn text(text: &str, offset: usize, max: usize) -> Self {
        Self::String {
            value: text.chars().skip(offset).take(max).collect(),
            length: text.chars().count(),
        }
    }
}

impl Room {
    fn outline(&mut self, value: &Json, offset: usize) -> Outline {
        self.parts = self.parts.saturating_sub(1);
        match value {
            Json::Null => Outline::Null,
            Json::Bool(value) => Outline::Boolean { value: *value },
            Json::Number(number) => Outline::Number { value: exact(number) },
            Json::String(text) => {
                let text = Outline::text(text, offset, TEXT_MAX.min(self.characters));
                if let Outline::String { value, .. } = &text {
                    self.characters = self.characters.saturating_sub(value.len());
                }
                text
            }
            Json::Array(all) => {
                let mut items = Vec::new();
                for item in all.iter().skip(offset).take(ITEMS_MAX) {
                    if self.parts == 0 {
                        break;
                    }
                    items.push(self.outline(item, 0));
                }
                Outline::List { length: all.len(), offset, items }
            }
            Json::Object(all) => {
                let (mut keys, mut items) = (Vec::new(), Vec::new());
                for (key, item) in all.iter().skip(offset).take(ITEMS_MAX) {
                    if self.parts == 0 {
                        break;
                    }
                    keys.push(key.clone());
                    items.push(self.outline(item, 0));
                }
                Outline::Object { length: all.len(), offset, keys, items }
            }
        }
    }
}

fn exact(number: &Number) -> Json {
    let fits = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => (-SAFE..=SAFE).contains(&whole),
        (None, Some(_)) => false,
        (None, None) => true,
    };
    if fits { Json::Number(number.clone()) } else { number.to_string().into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_values_are_cut_and_go_on_where_they_were_cut() {
        let list: Json = (0..100_000).collect();
        let Outline::List { length: 100_000, offset: 0, items } = Outline::of(&list, 0) else {
            panic!("not a list of 100,000 items");
        };
        assert_eq!(items.len(), ITEMS_MAX);
        let Outline::List { items, .. } = Outline::of(&list, 99_990) else { panic!("no list") };
        assert_eq!(items.len(), 10);
        let text = Json::from("ä".repeat(100_000));
        let Outline::String { value, length: 100_000 } = Outline::of(&text, 0) else {
            panic!("not a text of 100,000 characters");
        };
        assert_eq!(value.chars().count(), TEXT_MAX);
        let Outline::String { value, .. } = Outline::of(&text, 99_999) else { panic!("no text") };
        assert_eq!(value, "ä");
    }

    #[test]
    fn an_answer_has_a_size_whatever_the_value() {
        let wide = json!(vec![vec!["x".repeat(5_000); 90]; 90]);
        let size = json!(Outline::of(&wide, 0)).to_string().len();
        assert!(size < 200_000, "{size} bytes");
    }

    #[test]
    fn large_whole_numbers_keep_every_digit() {
        assert_eq!(
            Outline::of(&json!(u64::MAX), 0),
            Outline::Number { value: json!("18446744073709551615") }
        );
        assert_eq!(Outline::of(&json!(1.5), 0), Outline::Number { value: json!(1.5) });
    }
}
