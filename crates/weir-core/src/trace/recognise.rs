//! What a file is that is no capture, so that a message can say it.

/// Bytes that are looked at.
pub(crate) const LOOK: usize = 1 << 14;

/// Beginnings of files that people take for captures, with what they are.
const KNOWN: [(&[u8], &str); 16] = [
    (b"\x1f\x8b", "compressed with gzip; unpack it first: gunzip FILE"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first: unzstd FILE"),
    (b"\xfd7zXZ\x00", "compressed with xz; unpack it first: unxz FILE"),
    (b"BZh", "compressed with bzip2; unpack it first: bunzip2 FILE"),
    (b"\x04\x22\x4d\x18", "compressed with lz4; unpack it first: unlz4 FILE"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"snoop\x00\x00\x00", "a snoop file of Solaris; convert it first: editcap FILE FILE.pcapng"),
    (b"GMBU", "a capture of Microsoft Network Monitor; convert it first: editcap FILE FILE.pcapng"),
    (b"XCP\x00", "a capture of NetXRay; convert it first: editcap FILE FILE.pcapng"),
    (b"TRSNIFF data", "a capture of Sniffer; convert it first: editcap FILE FILE.pcapng"),
    (b"\x7fELF", "a program (ELF)"),
    (b"PAR1", "a Parquet table"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x0a\x0d\x0d\x0a", "the beginning of a pcapng file, cut off or damaged within its first 12 bytes"),
];

/// What `bytes` begin, if it is something known.
pub(crate) fn other(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some("the file is empty".into());
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some((*what).into());
    }
    text(bytes)
}

/// What cannot be classified any further.
pub(crate) fn unknown(bytes: &[u8]) -> String {
    let first: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("it begins with {}", first.join(" "))
}

/// Text is something to name, with its beginning.
fn text(bytes: &[u8]) -> Option<String> {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    if whole.chars().any(|letter| letter.is_control() && !letter.is_whitespace()) {
        return None;
    }
    let line: String = whole.trim_start().lines().next().unwrap_or("").chars().take(40).collect();
    if line.is_empty() {
        return None;
    }
    Some(format!("it is text that begins with '{line}'"))
}
