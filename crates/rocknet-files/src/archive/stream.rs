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
use rocknet_io::confined_fs::FileKind;
use rocknet_io::file;
use rocknet_proto::semantics::media_type::MediaType;
use tokio::sync::OwnedSemaphorePermit;

use super::format::{self, ArchiveEntry, BLOCK};
use super::scan::Scanned;
use crate::failure_log;
use crate::stepped::{self, Stepped};
use crate::tree::Tree;

/// Number of bytes after which a job ends.
const PIECE: usize = 128 * 1024;
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
    /// Held as long as the archive is sent.
    _permit: OwnedSemaphorePermit,
    tree: Arc<Tree>,
    scanned: Scanned,
    compress: bool,
    /// Number of bytes written so far.
    offset: u64,
    position: Position,
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
    pub fn new(
        tree: Arc<Tree>,
        scanned: Scanned,
        compress: bool,
        pool: Pool,
        permit: OwnedSemaphorePermit,
    ) -> ArchiveStream {
        ArchiveStream {
            length: (!compress).then(|| format::length(&scanned.entries)),
            priority: tree.route.priority,
            state: Some(Box::new(State {
                _permit: permit,
                tree,
                scanned,
                compress,
                offset: 0,
                position: Position::Entry(0),
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
    /// Writes the next piece. Returns it, and also the state if the archive has not ended.
    fn write_piece(mut self: Box<State>) -> io::Result<(Bytes, Option<Box<State>>)> {
        let mut out = Vec::with_capacity(PIECE + PIECE / 4);
        let before = self.offset;
        while out.len() < PIECE {
            let position = std::mem::replace(&mut self.position, Position::End);
            let start = out.len();
            self.position = match position {
                Position::Entry(index) => self.begin(index, &mut out)?,
                Position::Content(index, content) => self.proceed(index, content, &mut out)?,
                Position::Central(index, central) => match self.scanned.entries.get(index) {
                    Some(entry) => {
                        entry.push_central(&mut out);
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
        let Some(entry) = self.scanned.entries.get_mut(index) else {
            return Ok(Position::Central(0, offset));
        };
        entry.offset = offset;
        let start = out.len();
        entry.push_local_header(out);
        let header = (out.len() - start) as u64;
        if !entry.has_content() {
            return Ok(Position::Entry(index + 1));
        }
        let entry = &self.scanned.entries[index];
        let is_compressed = self.compress && MediaType::of_name(&entry.name).compressible;
        let content = Box::new(Content {
            file: self.open(entry)?,
            read: 0,
            crc: Crc::new(),
            start: offset + header,
            encoder: is_compressed.then(|| DeflateEncoder::new(Vec::new(), Compression::new(LEVEL))),
        });
        Ok(Position::Content(index, content))
    }

    /// Opens the file of an entry. Fails if it is shorter than it was, because its size was announced.
    fn open(&self, entry: &ArchiveEntry) -> io::Result<File> {
        let relative = self.scanned.path_of(entry);
        let opened = self
            .scanned
            .root
            .open_file(&relative, self.tree.symlinks)
            .map_err(|error| io::Error::other(error.to_string()))
            .and_then(|opened| match opened.meta.kind {
                FileKind::File if opened.meta.size >= entry.size => Ok(opened.file),
                _ => Err(io::Error::other("the file became shorter")),
            });
        opened.inspect_err(|error| failure_log::archive_cut(&self.tree, &relative, error))
    }

    /// Reads and writes the next part of a file, and the data descriptor at its end.
    fn proceed(&mut self, index: usize, mut content: Box<Content>, out: &mut Vec<u8>) -> io::Result<Position> {
        let size = self.scanned.entries[index].size;
        let length = (size - content.read).min(BLOCK as u64) as usize;
        let is_last = content.read + length as u64 == size;
        let start = out.len();
        if let Err(error) = content.copy(length, is_last, out) {
            let relative = self.scanned.path_of(&self.scanned.entries[index]);
            failure_log::archive_cut(&self.tree, &relative, &error);
            return Err(error);
        }
        if !is_last {
            return Ok(Position::Content(index, content));
        }
        if let Some(encoder) = content.encoder {
            out.extend_from_slice(&encoder.finish()?);
        }
        let entry = &mut self.scanned.entries[index];
        entry.crc = content.crc.sum();
        entry.packed = self.offset + (out.len() - start) as u64 - content.start;
        entry.push_descriptor(out);
        Ok(Position::Entry(index + 1))
    }
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
