//! Putting the pieces of an answer together.

use futures_util::StreamExt as _;
use superstep::state::{Message, Role};

use super::{ModelError, ModelStream, Trouble};

/// The message whose pieces a stream yields, with `id` if the model gave none. Each piece is shown before it is merged.
pub(crate) async fn collect(
    mut pieces: ModelStream,
    id: &str,
    mut show: impl FnMut(&Message),
) -> Result<Message, ModelError> {
    let mut whole: Option<Message> = None;
    while let Some(piece) = pieces.next().await {
        let mut piece = piece?;
        if piece.role != Role::Ai {
            let text = format!("the model answered with a message of `{}`", piece.role);
            return Err(ModelError::new(Trouble::BadRequest, text));
        }
        // All pieces have the id of the first, so that whoever shows them knows that they belong together.
        let begun = whole.as_ref().and_then(|whole| whole.id.clone());
        piece.id = begun.or(piece.id).or_else(|| Some(id.to_owned()));
        if piece.is_chunk() {
            show(&piece);
        }
        match &mut whole {
            None => whole = Some(piece),
            Some(whole) => whole.merge(piece).map_err(|error| {
                ModelError::new(Trouble::Broken, "the pieces of the answer do not fit together")
                    .with_source(error)
            })?,
        }
    }
    let whole = whole.ok_or_else(|| {
        ModelError::new(Trouble::Broken, "the model ended its answer before it began one")
    })?;
    Ok(whole.into_message())
}
