//! Shows which tokens let in, and as whom. Those of RSA and ECDSA were signed once, until the year 2100; their private keys are
//! not kept.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::*;

const RSA_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
     MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEApgI06cdqo7Om1NB1DFww\n\
     YSCQkhQhWwyxq5Vh+onaqNvSwIfXiQCxizr12IadscgLeFWUlgDUge/jevik1Zwf\n\
     vJGmzrFEqbVZIllXZ9wRdud5XhpkzGVNeoDr8gxJCjAQfrWBtXNMD4tFDZE8p/QX\n\
     Cqkq4d/MvmfHU2BJlg7b11yuSX8Y5GSfApZHey4KrL+vuhzH58ZbXv+6ZPSAF5aT\n\
     iBgdOWkcCcyie5+k6MIJipa45XRuLCvJhZA9+mSemcbxtzoiRqLqmO8rfCG7ATcH\n\
     KJImYEzq5qbkEyAj9NHj24Sefp1RHqEgedfSYtqgXXi8QSokNFTnkZl+9PK14lMd\n\
     aQIDAQAB\n\
     -----END PUBLIC KEY-----\n";

const RSA_TOKEN: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEiLCJ0ZW5hbnQiOiJhY21lIiwicm9sZSI6InZpZXdlciI",
    "sImlzcyI6Imh0dHBzOi8vaWQuZXhhbXBsZS5jb20iLCJhdWQiOiJhZ2VudHMiLCJleHAiOjQxMDI0NDQ4MDB9.V6V3eC7wWH",
    "Bj2H9W8QLfmu2iYb2WBuqysvWwoJBdtgwlP5uOSPlrWDObnTomGBCyTvG-Q05--eic2Ehh0wqVUGH32c3w2sA5-wEdHptgiv",
    "W6CWFgIPQwi6UKDys6sjWPUZf4WWRTbSfwYtloROnXkQhIiMz4k3vaWoi0tgZpluNq8s9dVhN3faPbRRCQyJr57mgOtR6WTE",
    "21FdxcD7Y2-95taKdjGGXNYYFpVzupgsPvG-hkMx4iJBKltGHshL93zhvTQ7_yfAS0DihlAQv0ecv5_4qzIDThr59u_ypPi_",
    "CL6EH2DG7yYdNdbBiGhEZ68LbRrHdWKGTxAWZAb_VyRA",
);

const EC_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
     MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfI0qadagu9llozT8aWgGkUmvO4KL\n\
     ElUdDC/F3Q5q4+q3/USg39RA7xpnSjT3iWkqtcRjguKZOyGOCR/wi21GLw==\n\
     -----END PUBLIC KEY-----\n";

const EC_TOKEN: &str = concat!(
    "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEiLCJ0ZW5hbnQiOiJhY21lIiwicm9sZSI6InZpZXdlciI",
    "sImlzcyI6Imh0dHBzOi8vaWQuZXhhbXBsZS5jb20iLCJhdWQiOiJhZ2VudHMiLCJleHAiOjQxMDI0NDQ4MDB9.2beiGDycFj",
    "PndAiC97LiOCO6bwAbYzSmttl-BtfqwN044dUF99wcL6rWjAefaDERVEwWXF5fWTcgUfztYkAzhA",
);

const SECRET: [u8; 32] = [7; 32];

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let padded = chunk.iter().chain(&[0, 0]).take(3);
        let bits = padded.fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for place in 0..=chunk.len() {
            text.push(char::from(DIGITS[bits >> (18 - 6 * place) & 63]));
        }
    }
    text
}

fn signed(algorithm: &str, claims: &Json, secret: &[u8]) -> String {
    let head = json!({ "alg": algorithm, "typ": "JWT" }).to_string();
    let message =
        format!("{}.{}", base64url(head.as_bytes()), base64url(claims.to_string().as_bytes()));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length");
    mac.update(message.as_bytes());
    format!("{message}.{}", base64url(&mac.finalize().into_bytes()))
}

fn claims() -> Json {
    json!({
        "sub": "ada", "tenant": "acme", "role": "viewer", "iss": "https://id.example.com",
        "aud": "agents", "exp": 4_102_444_800_u64,
    })
}

fn strict(jwt: Jwt) -> Jwt {
    jwt.issuer("https://id.example.com").audience("agents")
}

#[test]
fn three_ways_to_sign_say_who_it_is() {
    let expected = Identity::new("ada").tenant("acme").role(Role::Viewer);
    for (jwt, token) in [
        (Jwt::hs256(&SECRET), &*signed("HS256", &claims(), &SECRET)),
        (Jwt::rs256(RSA_KEY.as_bytes()), RSA_TOKEN),
        (Jwt::es256(EC_KEY.as_bytes()), EC_TOKEN),
    ] {
        let jwt = strict(jwt.expect("a key"));
        assert_eq!(jwt.identity(token).expect("it is let in"), expected, "{jwt:?}");
        let mut changed = token.to_owned();
        let last = changed.pop();
        changed.push(if last == Some('A') { 'Q' } else { 'A' });
        for other in [&*changed, &token[..token.len() - 9], &token.replacen('.', "", 1), ""] {
            assert!(matches!(jwt.identity(other), Err(Denied::Unauthenticated(_))), "{other}");
        }
    }
    let jwt = Jwt::hs256(&SECRET).expect("a key").tenant_claim("org").role_claim("rank");
    let token = json!({ "sub": "bob", "exp": 4_102_444_800_u64, "org": "bolt", "rank": "admin" });
    let token = signed("HS256", &token, &SECRET);
    let expected = Identity::new("bob").tenant("bolt").role(Role::Admin);
    assert_eq!(jwt.identity(&token).expect("it is let in"), expected);
}

#[test]
fn a_token_that_says_something_else_is_refused() {
    let jwt = strict(Jwt::hs256(&SECRET).expect("a key"));
    for (claim, value) in [
        ("exp", json!(1_000)),
        ("exp", Json::Null),
        ("exp", json!("4102444800")),
        ("nbf", json!(4_102_444_000_u64)),
        ("iss", json!("https://elsewhere.example.com")),
        ("iss", Json::Null),
        ("aud", json!("others")),
        ("aud", Json::Null),
        ("sub", Json::Null),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("role", json!("king")),
        ("tenant", json!(["acme"])),
    ] {
        let mut token = claims();
        token[claim] = value.clone();
        let refused = jwt.identity(&signed("HS256", &token, &SECRET));
        assert!(matches!(refused, Err(Denied::Unauthenticated(_))), "{claim}: {value}");
    }
    let loose = Jwt::hs256(&SECRET).expect("a key");
    let refused = loose.identity(&signed("HS256", &claims(), &SECRET));
    assert!(refused.is_err(), "it is for an audience that is not known");
}

#[test]
fn nobody_chooses_how_a_token_is_verified() {
    let rsa = Jwt::rs256(RSA_KEY.as_bytes()).expect("a key").audience("agents");
    // Signed with the public key as if it were a secret.
    let forged = signed("HS256", &claims(), RSA_KEY.as_bytes());
    assert!(rsa.identity(&forged).is_err());
    let jwt = strict(Jwt::hs256(&SECRET).expect("a key"));
    for algorithm in ["none", "HS512", "RS256"] {
        assert!(jwt.identity(&signed(algorithm, &claims(), &SECRET)).is_err(), "{algorithm}");
    }
    assert!(jwt.identity(&signed("HS256", &claims(), &[8; 32])).is_err());
    assert!(jwt.identity(RSA_TOKEN).is_err());
    assert!(Jwt::hs256(b"short").is_err() && Jwt::rs256(b"no key").is_err());
    assert!(Jwt::es256(RSA_KEY.as_bytes()).is_err());
    assert!(!format!("{jwt:?}").contains("7, 7"));
}
