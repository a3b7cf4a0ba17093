use serde_json::json;
use superstep_checkpoint::{Blob, Tag, from_value, to_value};

use super::*;

fn json(message: &Message) -> serde_json::Value {
    serde_json::to_value(message).expect("a message")
}

fn read(json: serde_json::Value) -> Message {
    serde_json::from_value(json).expect("a message")
}

/// The bytes are those that LangGraph writes.
#[test]
fn a_message_is_stored_as_an_object_of_its_class() {
    let stored = Blob::encode(&Message::human("hi").with_id("m1")).expect("a message");
    let expected = [
        &b"\xc7\x89\x05\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xa2hi"[..],
        b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xa2m1",
        b"\xb3model_validate_json",
    ];
    assert_eq!(stored.bytes(), expected.concat());
    assert_eq!(*stored.tag(), Tag::Msgpack);
}

#[test]
fn a_message_comes_back_from_bytes_and_from_data() {
    let call = ToolCall::new("c1", "search", [("q", "x")]);
    let messages = [
        Message::human(vec![Value::from_iter([("type", "text"), ("text", "hi")])]).with_name("Ada"),
        Message::ai("").with_tool_calls([call]),
        Message::tool("c1", "none").with_status(ToolStatus::Error).with_artifact(vec![1, 2]),
        Message::new(Role::Chat("critic".into()), "no"),
        Message::remove_all(),
        Message::new("poem", "x").with_class("poems", "Poem"),
        Message {
            extra: Map::from_iter([("score".into(), 0.5.into())]),
            ..Message::system("be kind")
        },
    ];
    for message in messages {
        let blob = Blob::encode(&message).expect("a message");
        assert_eq!(blob.decode::<Message>().expect("a message"), message);
        assert_eq!(blob.to_value().expect("data"), to_value(&message).expect("data"));
        assert_eq!(
            from_value::<Message>(to_value(&message).expect("data")).expect("a message"),
            message
        );
        let without_class = Message { class: None, ..message.clone() };
        assert_eq!(read(json(&message)), without_class);
    }
}

#[test]
fn json_is_what_langchain_has() {
    let shown = json(&Message::ai("hi").with_id("m1"));
    let expected = json!({
        "content": "hi", "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": null, "id": "m1",
        "tool_calls": [], "invalid_tool_calls": [], "usage_metadata": null,
    });
    assert_eq!(shown, expected);
    let shown = json(&Message::tool("c1", "42"));
    assert_eq!(
        (&shown["tool_call_id"], &shown["status"], &shown["artifact"]),
        (&json!("c1"), &json!("success"), &json!(null))
    );
}

#[test]
fn every_form_that_add_messages_takes_is_read() {
    assert_eq!(read(json!("hi")), Message::human("hi"));
    assert_eq!(read(json!(["assistant", "hi"])), Message::ai("hi"));
    assert_eq!(read(json!({ "role": "user", "content": "hi" })), Message::human("hi"));
    let lc = json!({
        "lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessageChunk"],
        "kwargs": { "content": "hi", "id": "m1", "type": "AIMessageChunk" },
    });
    assert_eq!(read(lc), Message::ai("hi").with_id("m1"));
    let developer = read(json!({ "role": "developer", "content": "be kind", "seed": 1 }));
    assert_eq!(developer.role, Role::System);
    let kwargs = json!({ "seed": 1, "__openai_role__": "developer" });
    assert_eq!(json(&developer)["additional_kwargs"], kwargs);
    let calls = json!({
        "role": "assistant", "content": null,
        "tool_calls": [{ "type": "function", "id": "c1", "function": { "name": "f", "arguments": "{\"a\":1}" } }],
    });
    let expected = Message::ai("").with_tool_calls([ToolCall::new("c1", "f", [("a", 1)])]);
    assert_eq!(read(calls), expected);
    assert_eq!(read(json!({ "type": "remove", "id": "m1" })), Message::remove("m1"));
}

#[test]
fn what_is_no_message_is_refused() {
    let refused = |json: serde_json::Value| {
        serde_json::from_value::<Message>(json).expect_err("no message").to_string()
    };
    assert!(
        refused(json!({ "role": "critic", "content": "no" })).contains("`critic` is not a role")
    );
    assert!(refused(json!({ "content": "hi" })).contains("needs `type` or `role`"));
    assert!(refused(json!({ "type": "ai" })).contains("the message of `ai` has no `content`"));
    let document = Blob::new(
        Tag::Msgpack,
        *b"\xc7\x2a\x05\x94\xa9documents\xa3Doc\x81\xa4page\x01\xb3model_validate_json",
    );
    let error = document.decode::<Message>().expect_err("no message").to_string();
    assert!(error.contains("an object of the class `documents.Doc`"), "{error}");
}

/// A field whose value is not of the declared type is kept as it is.
#[test]
fn nothing_that_does_not_fit_is_lost() {
    let odd = json!({
        "content": "x", "additional_kwargs": null, "response_metadata": {}, "type": "ai", "name": 5, "id": "m1",
        "tool_calls": [{ "name": "f" }], "invalid_tool_calls": [], "usage_metadata": 7, "status": "fine",
    });
    assert_eq!(json(&read(odd.clone())), odd);
}
