//! What both ends prove to each other: that they hold the same secret.
//!
//! Every datagram carries the first 128 bits of an HMAC-SHA-256 over what comes before them, and tags are compared in
//! constant time. No key is used for two purposes: each is drawn from another one under a name of its own. Nothing is
//! hidden: what is sent is no secret, only who may send it.
//!
//! Source: RFC 2104, 2 and 5 (truncation); RFC 4868, 2.6 (key and tag lengths).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::LiveError;

/// Length of a tag, bytes.
pub const TAG: usize = 16;
/// Shortest secret, bytes.
pub const LEAST_SECRET: usize = 16;
/// Longest secret, bytes.
pub const MOST_SECRET: usize = 1024;

/// A number that is used once.
pub type Nonce = [u8; 16];

/// A key for one purpose.
#[derive(Clone)]
pub struct Key {
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// The key that a secret is.
    ///
    /// # Errors
    /// A secret that is too short or too long.
    pub fn of_secret(secret: &[u8]) -> Result<Key, LiveError> {
        if !(LEAST_SECRET..=MOST_SECRET).contains(&secret.len()) {
            let held = secret.len();
            let text = format!("a secret has {LEAST_SECRET} to {MOST_SECRET} bytes (got {held})");
            return Err(LiveError::Plan(text));
        }
        Ok(Key::new(secret).derive("weir rapid 1", &[]))
    }

    /// A key that nobody else knows.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn random() -> Result<Key, LiveError> {
        Ok(Key::new(&random::<32>()?))
    }

    fn new(bytes: &[u8]) -> Key {
        Key { mac: Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length") }
    }

    /// The key for `purpose`, bound to `parts` of fixed lengths.
    #[must_use]
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> Key {
        let mut mac = self.mac.clone();
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        parts.iter().for_each(|part| mac.update(part));
        Key::new(&mac.finalize().into_bytes())
    }

    /// The tag of `body`.
    pub fn tag(&self, body: &[u8]) -> [u8; TAG] {
        let mut mac = self.mac.clone();
        mac.update(body);
        let whole = mac.finalize().into_bytes();
        *whole.first_chunk().expect("32 bytes")
    }

    /// Whether `tag` is that of `body`; takes as long whatever it is.
    pub fn made(&self, body: &[u8], tag: &[u8; TAG]) -> bool {
        let mut mac = self.mac.clone();
        mac.update(body);
        mac.verify_truncated_left(tag).is_ok()
    }

    /// `body` with its tag behind it.
    pub fn seal(&self, mut body: Vec<u8>) -> Vec<u8> {
        let tag = self.tag(&body);
        body.extend(tag);
        body
    }

    /// What stands before the tag at the end of `datagram`, if this key made that.
    pub fn open<'a>(&self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let (body, tag) = datagram.split_last_chunk::<TAG>()?;
        self.made(body, tag).then_some(body)
    }
}

/// Random bytes.
///
/// # Errors
/// The system gives none.
pub fn random<const N: usize>() -> Result<[u8; N], LiveError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| LiveError::System { what: "draw random numbers".into(), source: error.into() })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_the_published_test_cases() {
        // RFC 4231, test case 2, truncated to 128 bits.
        let tag = Key::new(b"Jefe").tag(b"what do ya want for nothing?");
        let expected: [u8; TAG] =
            [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7];
        assert_eq!(tag, expected);
    }

    #[test]
    fn a_changed_bit_another_purpose_or_another_secret_is_noticed() {
        let key = Key::of_secret(&[7; 16]).expect("long enough");
        let sealed = key.seal(b"text".to_vec());
        assert_eq!(key.open(&sealed), Some(&b"text"[..]));
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(&changed), None, "bit {bit}");
        }
        assert_eq!(key.derive("other", &[]).open(&sealed), None);
        assert_eq!(Key::of_secret(&[8; 16]).expect("long enough").open(&sealed), None);
        assert_eq!(key.open(&sealed[..TAG - 1]), None);
    }

    #[test]
    fn short_secrets_are_refused() {
        assert!(Key::of_secret(&[1; LEAST_SECRET - 1]).is_err());
        assert!(Key::of_secret(&[1; MOST_SECRET + 1]).is_err());
    }
}
