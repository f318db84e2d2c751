//! pcapng out: one section, an interface for each tap, stamps in ns.
//!
//! The same frames give the same bytes on every machine. Source: PCAPNG, sections 3 and 4.

use std::io::{self, Write};

use crate::units::{Rate, Time};

const SECTION: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const STATISTICS: u32 = 5;
const ETHERNET: u16 = 1;
/// Nanoseconds, as the option `if_tsresol` writes them.
const NANOSECONDS: u8 = 9;
const PS_PER_NS: u64 = 1_000;

/// Where frames are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap<'a> {
    /// Its name.
    pub name: &'a str,
    /// Rate of the link.
    pub rate: Rate,
    /// Most bytes of a frame that are kept; 0 is no limit.
    pub snap_bytes: u32,
}

/// Writes a capture.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
    snaps: Vec<u32>,
}

impl<W: Write> Writer<W> {
    /// Begin a capture made by `program`, with the interfaces `taps`.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn new(out: W, program: &str, taps: &[Tap<'_>]) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, block: Vec::new(), snaps: taps.iter().map(|tap| tap.snap_bytes).collect() };
        writer.word(BYTE_ORDER);
        writer.block.extend([1, 0, 0, 0]); // version 1.0
        writer.block.extend([0xff; 8]); // length of the section: not reported
        writer.option(4, program.as_bytes());
        writer.end_options();
        writer.end_block(SECTION)?;
        for tap in taps {
            writer.block.extend(ETHERNET.to_le_bytes());
            writer.block.extend([0, 0]);
            writer.word(tap.snap_bytes);
            writer.option(2, tap.name.as_bytes());
            writer.option(8, &tap.rate.bps().to_le_bytes());
            writer.option(9, &[NANOSECONDS]);
            writer.end_options();
            writer.end_block(INTERFACE)?;
        }
        Ok(writer)
    }

    /// Write the frame whose first bytes are `bytes`, seen at `at` by the tap numbered `tap`, `frame_bytes` long
    /// without its check sequence.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn frame(&mut self, tap: u32, at: Time, bytes: &[u8], frame_bytes: u32) -> io::Result<()> {
        let most = self.snaps.get(tap as usize).map_or(0, |&snap| if snap == 0 { u32::MAX } else { snap });
        let kept = bytes.len().min(frame_bytes as usize).min(most as usize);
        let ns = at.ps() / PS_PER_NS;
        self.word(tap);
        self.word((ns >> 32) as u32);
        self.word(ns as u32);
        self.word(kept as u32);
        self.word(frame_bytes);
        self.block.extend(&bytes[..kept]);
        self.pad();
        self.end_block(PACKET)
    }

    /// Write how many frames the tap numbered `tap` saw in all, and how many of them are not in the file.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn statistics(&mut self, tap: u32, seen: u64, left_out: u64) -> io::Result<()> {
        self.word(tap);
        self.word(0); // no stamp
        self.word(0);
        self.option(4, &seen.to_le_bytes());
        self.option(5, &left_out.to_le_bytes());
        self.end_options();
        self.end_block(STATISTICS)
    }

    /// What was written to, after all of it was handed over.
    ///
    /// # Errors
    /// What `out` says when it is written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn word(&mut self, word: u32) {
        self.block.extend(word.to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn end_options(&mut self) {
        self.word(0);
    }

    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}
