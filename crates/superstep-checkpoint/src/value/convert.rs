use std::collections::BTreeSet;

use super::{Ext, Interrupt, Map, Packet, Set, Value};

macro_rules! from {
    ($($type:ty => |$name:ident| $value:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($name: $type) -> Self {
                $value
            }
        }
    )*};
}

from! {
    () => |_unit| Self::Null;
    bool => |yes| Self::Bool(yes);
    i8 => |number| Self::Int(number.into());
    i16 => |number| Self::Int(number.into());
    i32 => |number| Self::Int(number.into());
    i64 => |number| Self::Int(number);
    u8 => |number| Self::Int(number.into());
    u16 => |number| Self::Int(number.into());
    u32 => |number| Self::Int(number.into());
    u64 => |number| i64::try_from(number).map_or(Self::UInt(number), Self::Int);
    usize => |number| Self::from(number as u64);
    f32 => |number| Self::Float(number.into());
    f64 => |number| Self::Float(number);
    char => |letter| Self::Str(letter.into());
    &str => |text| Self::Str(text.to_owned());
    String => |text| Self::Str(text);
    Map => |map| Self::Map(map);
    BTreeSet<Value> => |set| Self::Set(set.into_iter().collect());
    Set => |set| Self::Set(set);
    Ext => |ext| Self::Ext(Box::new(ext));
    Packet => |packet| Ext::Send(packet).into();
    Interrupt => |interrupt| Ext::Interrupt(interrupt).into();
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(items: [T; N]) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(item: Option<T>) -> Self {
        item.map_or(Self::Null, Into::into)
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}
