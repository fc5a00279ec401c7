//! The bytes of an archive, read and packed while they are sent. No thread waits for the client, because each piece is
//! a separate job.

use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use rocknet_blocking::Pool;
use rocknet_config::model::Priority;
use rocknet_handler::response::Stream;
use rocknet_io::file;
use rocknet_proto::semantics::media_type::MediaType;

use super::format::{self, BLOCK};
use super::scan::{Scanned, ScannedEntry};
use crate::failure_log;
use crate::stepped::{self, Stepped};
use crate::tree::Tree;

/// Number of bytes of the archive after which a job ends.
const PIECE: usize = 128 * 1024;
/// Number of bytes read from files after which a job ends. Compression may turn many of them into a few bytes.
const MAX_INPUT: usize = 256 * 1024;
/// Number of files after which a job ends, because opening a file may wait for the disk.
const MAX_FILES: usize = 16;
/// Level of compression, as for content codings.
const LEVEL: u32 = 5;

/// An archive that is sent.
pub struct ArchiveStream {
    /// `None` while a job has the state, at the end of the archive, and after an error.
    state: Option<Box<State>>,
    /// Length of the archive; `None` with compression.
    length: Option<u64>,
    pool: Pool,
    priority: Priority,
}

/// The part that jobs use.
struct State {
    tree: Arc<Tree>,
    scanned: Box<Scanned>,
    compress: bool,
    /// Number of bytes written so far.
    offset: u64,
    position: Position,
    /// Number of bytes of files that the job has read.
    input: usize,
    /// Number of files that the job has opened.
    files: usize,
}

/// The next part of the archive.
enum Position {
    /// The entry with this index.
    Entry(usize),
    /// The rest of the file with this index.
    Content(usize, Box<Content>),
    /// The entry with this index in the central directory, which begins at this offset.
    Central(usize, u64),
    End,
}

/// A file that is sent.
struct Content {
    file: File,
    /// Number of bytes read so far.
    read: u64,
    crc: Crc,
    /// Offset at which the content begins.
    start: u64,
    /// `None` if the content is not compressed.
    encoder: Option<DeflateEncoder<Vec<u8>>>,
}

impl ArchiveStream {
    /// Starts an archive.
    pub fn new(tree: Arc<Tree>, scanned: Box<Scanned>, compress: bool, pool: Pool) -> ArchiveStream {
        ArchiveStream {
            length: (!compress).then_some(scanned.length),
            priority: tree.route.priority,
            state: Some(Box::new(State {
                tree,
                scanned,
                compress,
                offset: 0,
                position: Position::Entry(0),
                input: 0,
                files: 0,
            })),
            pool,
        }
    }
}

impl Stream for ArchiveStream {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(stepped::next(&mut self.state, &self.pool, self.priority))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

impl Stepped for Box<State> {
    fn step(self) -> io::Result<(Bytes, Option<Box<State>>)> {
        self.write_piece()
    }
}

impl State {
    /// Writes the next piece, which may be empty. Returns it, and also the state if the archive has not ended.
    fn write_piece(mut self: Box<State>) -> io::Result<(Bytes, Option<Box<State>>)> {
        // The last block or header may exceed the piece.
        let mut out = Vec::with_capacity(PIECE + PIECE / 4);
        let before = self.offset;
        (self.input, self.files) = (0, 0);
        while out.len() < PIECE && self.input < MAX_INPUT && self.files < MAX_FILES {
            let position = std::mem::replace(&mut self.position, Position::End);
            let start = out.len();
            self.position = match position {
                Position::Entry(index) => self.begin(index, &mut out)?,
                Position::Content(index, content) => self.proceed(index, content, &mut out)?,
                Position::Central(index, central) => match self.scanned.entries.get(index) {
                    Some(found) => {
                        found.entry.push_central(&mut out);
                        Position::Central(index + 1, central)
                    }
                    None => {
                        format::push_end(&mut out, self.scanned.entries.len(), central, self.offset);
                        Position::End
                    }
                },
                Position::End => break,
            };
            self.offset += (out.len() - start) as u64;
        }
        debug_assert_eq!(self.offset - before, out.len() as u64);
        let has_ended = matches!(self.position, Position::End);
        Ok((out.into(), (!has_ended).then_some(self)))
    }

    /// Writes the local header of an entry.
    fn begin(&mut self, index: usize, out: &mut Vec<u8>) -> io::Result<Position> {
        let offset = self.offset;
        let Some(ScannedEntry { entry, .. }) = self.scanned.entries.get_mut(index) else {
            return Ok(Position::Central(0, offset));
        };
        entry.offset = offset;
        let start = out.len();
        entry.push_local_header(out);
        let header = (out.len() - start) as u64;
        if !entry.has_content() {
            return Ok(Position::Entry(index + 1));
        }
        self.files += 1;
        let found = &self.scanned.entries[index];
        let is_compressed = self.compress && MediaType::of_name(&found.entry.name).compressible;
        let content = Box::new(Content {
            file: self.open(found)?,
            read: 0,
            crc: Crc::new(),
            start: offset + header,
            encoder: is_compressed.then(|| DeflateEncoder::new(Vec::new(), Compression::new(LEVEL))),
        });
        Ok(Position::Content(index, content))
    }

    /// Opens the file of an entry. Fails if it was replaced or changed since the scan, because the length of the
    /// archive was computed from its size, and the archive would mix files of different times.
    fn open(&self, found: &ScannedEntry) -> io::Result<File> {
        let relative = self.scanned.path_of(&found.entry);
        let opened = self.scanned.root.open_file(&relative, self.scanned.symlinks);
        opened
            .map_err(|error| io::Error::other(error.to_string()))
            .and_then(|opened| check(found, &opened.file).map(|()| opened.file))
            .inspect_err(|error| failure_log::archive_cut(&self.tree, &relative, error))
    }

    /// Reads and writes the next part of a file, and the data descriptor at its end.
    fn proceed(&mut self, index: usize, mut content: Box<Content>, out: &mut Vec<u8>) -> io::Result<Position> {
        let found = &self.scanned.entries[index];
        let size = found.entry.size;
        let length = (size - content.read).min(BLOCK as u64) as usize;
        let is_last = content.read + length as u64 == size;
        let start = out.len();
        self.input += length;
        let mut copied = content.copy(length, is_last, out);
        if is_last {
            copied = copied.and_then(|()| check(found, &content.file));
        }
        if let Err(error) = copied {
            failure_log::archive_cut(&self.tree, &self.scanned.path_of(&found.entry), &error);
            return Err(error);
        }
        if !is_last {
            return Ok(Position::Content(index, content));
        }
        if let Some(encoder) = content.encoder {
            out.extend_from_slice(&encoder.finish()?);
        }
        let ScannedEntry { entry, .. } = &mut self.scanned.entries[index];
        entry.crc = content.crc.sum();
        entry.packed = self.offset + (out.len() - start) as u64 - content.start;
        entry.push_descriptor(out);
        Ok(Position::Entry(index + 1))
    }
}

/// Fails if an open file is not the one that was found for the entry, or if it has changed.
fn check(found: &ScannedEntry, file: &File) -> io::Result<()> {
    found.version.map_or(Ok(()), |version| version.check(file))
}

impl Content {
    /// Reads the next `length` bytes of the file and writes them.
    fn copy(&mut self, length: usize, is_last: bool, out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.encoder {
            None => {
                format::push_block_header(out, length, is_last);
                let begin = out.len();
                out.resize(begin + length, 0);
                file::read_range(&self.file, self.read, &mut out[begin..])?;
                self.crc.update(&out[begin..]);
            }
            Some(encoder) => {
                let mut piece = vec![0; length];
                file::read_range(&self.file, self.read, &mut piece)?;
                self.crc.update(&piece);
                encoder.write_all(&piece)?;
                out.append(encoder.get_mut());
            }
        }
        self.read += length as u64;
        Ok(())
    }
}
