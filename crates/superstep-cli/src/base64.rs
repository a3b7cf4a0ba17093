//! Bytes as text.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of these bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let three =
            [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for nth in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * nth)) as usize & 63];
            text.push(if nth <= chunk.len() { letter as char } else { '=' });
        }
    }
    text
}

/// Decodes base64; `None` if the text is invalid.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    for (at, chunk) in text.chunks(4).enumerate() {
        let ends = chunk.iter().rev().take_while(|letter| **letter == b'=').count();
        if ends > 2 || ends > 0 && (at + 1) * 4 != text.len() {
            return None;
        }
        let mut bits = 0u32;
        for letter in chunk {
            let six = match letter {
                b'=' => 0,
                letter => LETTERS.iter().position(|known| known == letter)?,
            };
            bits = bits << 6 | six as u32;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - ends]);
    }
    // A '=' in the middle was taken for a letter of zero bits.
    (encode(&bytes).as_bytes() == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back_and_the_text_is_the_usual_one() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        for wrong in ["Zg", "Z===", "Zg==Zg==", "Zh==", "Z=g=", "Zm9*"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
