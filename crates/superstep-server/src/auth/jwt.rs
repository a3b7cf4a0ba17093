use std::fmt;

use axum::http::request::Parts;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, decode};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value as Json};

use super::gate::bearer;
use super::{Auth, Denied};
use crate::access::{Identity, Role};

/// The shortest secret for [`Jwt::hs256`], in bytes: as long as the hash.
const SECRET_MIN: usize = 32;

/// A key cannot verify tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTokenKey(String);

/// Lets those in who send a JSON Web Token as `authorization: Bearer`. Needs the feature `jwt`.
///
/// A token must have `sub`, who it is, and `exp`, and must be valid now, with a minute of leeway. The claim `tenant` names the tenant, and
/// `role` the [`Role`]; without them it is a user of the default tenant. A token that names an audience is refused
/// unless [`Jwt::audience`] is among it.
///
/// ```
/// use superstep_server::{Jwt, Server};
///
/// # fn main() -> Result<(), superstep_server::BadTokenKey> {
/// # let secret = [7; 32];
/// let tokens = Jwt::hs256(&secret)?.issuer("https://id.example.com").audience("agents");
/// let server = Server::new().auth(tokens);
/// # let _ = server;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Jwt {
    key: DecodingKey,
    validation: Validation,
    tenant: String,
    role: String,
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("algorithms", &self.validation.algorithms)
            .finish_non_exhaustive()
    }
}

impl Jwt {
    /// Tokens that are signed with a secret that both sides have.
    ///
    /// # Errors
    /// The secret is shorter than 32 bytes.
    pub fn hs256(secret: &[u8]) -> Result<Self, BadTokenKey> {
        if secret.len() < SECRET_MIN {
            return Err(BadTokenKey(format!(
                "the secret of tokens has {} bytes; it must have {SECRET_MIN}",
                secret.len()
            )));
        }
        Ok(Self::new(Algorithm::HS256, DecodingKey::from_secret(secret)))
    }

    /// Tokens that are signed with RSA, and the public key as PEM.
    ///
    /// # Errors
    /// The text is no such key.
    pub fn rs256(public_key_pem: &[u8]) -> Result<Self, BadTokenKey> {
        let key = DecodingKey::from_rsa_pem(public_key_pem).map_err(|error| no_key(&error))?;
        Ok(Self::new(Algorithm::RS256, key))
    }

    /// Tokens that are signed with ECDSA on P-256, and the public key as PEM.
    ///
    /// # Errors
    /// The text is no such key.
    pub fn es256(public_key_pem: &[u8]) -> Result<Self, BadTokenKey> {
        let key = DecodingKey::from_ec_pem(public_key_pem).map_err(|error| no_key(&error))?;
        Ok(Self::new(Algorithm::ES256, key))
    }

    fn new(algorithm: Algorithm, key: DecodingKey) -> Self {
        // An error means that the program has chosen another one already, which does the same.
        let _ = PROVIDER.install_default();
        let mut validation = Validation::new(algorithm);
        validation.validate_nbf = true;
        validation.required_spec_claims = ["exp", "sub"].map(str::to_owned).into();
        Self { key, validation, tenant: "tenant".to_owned(), role: "role".to_owned() }
    }

    /// Only tokens with this `iss`.
    #[must_use]
    pub fn issuer(mut self, issuer: &str) -> Self {
        self.validation.set_issuer(&[issuer]);
        self.validation.required_spec_claims.insert("iss".to_owned());
        self
    }

    /// Only tokens with this in their `aud`.
    #[must_use]
    pub fn audience(mut self, audience: &str) -> Self {
        self.validation.set_audience(&[audience]);
        self.validation.required_spec_claims.insert("aud".to_owned());
        self
    }

    /// The claim that names the tenant; `tenant` if nothing is said.
    #[must_use]
    pub fn tenant_claim(mut self, claim: impl Into<String>) -> Self {
        self.tenant = claim.into();
        self
    }

    /// The claim that names the role; `role` if nothing is said.
    #[must_use]
    pub fn role_claim(mut self, claim: impl Into<String>) -> Self {
        self.role = claim.into();
        self
    }

    fn identity(&self, token: &str) -> Result<Identity, Denied> {
        let refuse = |why: &str| Denied::Unauthenticated(format!("the token is refused: {why}"));
        let claims = decode::<Map<String, Json>>(token, &self.key, &self.validation);
        let claims = claims.map_err(|error| refuse(&error.to_string()))?.claims;
        let claim = |name: &str| match claims.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(refuse(&format!("the claim `{name}` is not a text"))),
        };
        let who = claim("sub")?.filter(|who| !who.is_empty());
        let mut identity = Identity::new(who.ok_or_else(|| refuse("it has no `sub`"))?);
        if let Some(role) = claim(&self.role)? {
            identity = identity.role(role.parse::<Role>().map_err(|error| refuse(&error))?);
        }
        Ok(identity.tenant(claim(&self.tenant)?.unwrap_or_default()))
    }
}

impl Auth for Jwt {
    async fn authenticate(&self, request: &Parts) -> Result<Identity, Denied> {
        let token = bearer(&request.headers).ok_or_else(|| {
            Denied::Unauthenticated("send a token as `authorization: Bearer`".to_owned())
        })?;
        self.identity(token)
    }
}

fn no_key(error: &jsonwebtoken::errors::Error) -> BadTokenKey {
    BadTokenKey(format!("the public key of tokens cannot be read: {error}"))
}

/// Calculates with `ring`, which is there for TLS.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, jsonwebtoken::errors::Error> {
    let (family, kind) = match algorithm {
        Algorithm::HS256 => (AlgorithmFamily::Hmac, None),
        Algorithm::RS256 => {
            let kind: &'static dyn VerificationAlgorithm = &RSA_PKCS1_2048_8192_SHA256;
            (AlgorithmFamily::Rsa, Some(kind))
        }
        Algorithm::ES256 => {
            let kind: &'static dyn VerificationAlgorithm = &ECDSA_P256_SHA256_FIXED;
            (AlgorithmFamily::Ec, Some(kind))
        }
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    let key = key.try_get_as_bytes()?.to_vec();
    Ok(Box::new(RingVerifier { algorithm: *algorithm, kind, key }))
}

struct RingVerifier {
    algorithm: Algorithm,
    /// None for a secret.
    kind: Option<&'static dyn VerificationAlgorithm>,
    key: Vec<u8>,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signed: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match self.kind {
            Some(kind) => UnparsedPublicKey::new(kind, &self.key).verify(message, signed),
            None => {
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.key);
                ring::hmac::verify(&key, message, signed)
            }
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
