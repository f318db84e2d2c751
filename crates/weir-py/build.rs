//! Gives the compiled core a name for what it computes: a digest of the sources of models and engines, the same on every
//! platform. Results are kept under it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 2] = ["../weir-core/src", "../weir-sim/src"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo:rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files)?;
    }
    files.sort();
    // FNV-1a: no dependency, and nobody is to be kept from finding two sources of one digest.
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.to_string_lossy().replace('\\', "/");
        let bytes = fs::read(&file)?;
        // Line ends of a checkout are no part of what is computed.
        for byte in name.bytes().chain(bytes.into_iter().filter(|&byte| byte != b'\r')) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=WEIRLAB_ENGINE={digest:016x}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
