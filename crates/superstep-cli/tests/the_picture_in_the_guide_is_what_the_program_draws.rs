//! The picture of the demo's graph in the guide is the one that `superstep graph --format svg` prints: a picture that somebody drew by
//! hand would go on showing a graph that has changed.

use std::path::Path;

mod world;

#[test]
fn byte_for_byte() {
    let drawn = world::said(&world::superstep(&["graph", "--format", "svg"]));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src/pictures/mail.svg");
    let kept = std::fs::read_to_string(&file).expect("the picture in the guide");
    assert_eq!(
        kept.trim_end(),
        drawn.trim_end(),
        "run `cargo run -- graph --format svg > docs/guide/src/pictures/mail.svg`"
    );
}
