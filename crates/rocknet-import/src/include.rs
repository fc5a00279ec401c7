//! Reads the files that a configuration includes, and replaces each directive that includes files by their directives.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rocknet_config::environment::{Environment, FileKind};

use crate::directive::{Directive, SyntaxError};
use crate::document::Notes;
use crate::imported::ImportError;
use crate::note::{MAY_RESTRICT_ACCESS, Note};
use crate::source::SourceMap;

/// Maximum depth of included files. Configurations in use have about three levels.
const MAX_DEPTH: usize = 8;

/// Maximum depth of files in a folder that is included, as in Apache (`AP_MAX_INCLUDE_DIR_DEPTH`). Apache refuses to
/// start with deeper folders.
const MAX_FOLDER_DEPTH: usize = 20;

/// Maximum number of bytes of all files together, so that the directives in memory have a bound.
const MAX_TOTAL_BYTES: usize = 4 * crate::MAX_BYTES;

/// Maximum number of directives that are inserted, far more than configurations in use have. A file counts each time
/// that it is included, because files that include others several times multiply the directives.
const MAX_INSERTED: usize = 100_000;

/// A directive that includes files.
pub(crate) struct IncludeRequest {
    /// Path of a file or folder, or a pattern. Relative paths are relative to [`IncludeRules::folder`].
    pub path: String,
    /// True if `path` may be the name of a snippet instead, as in `import x` of Caddy. If no file matches, the
    /// directive is then kept without a note.
    pub may_be_snippet: bool,
}

/// Rules of one language for the inclusion of files.
pub(crate) trait IncludeRules {
    fn read(&self, text: &str) -> Result<Vec<Directive>, SyntaxError>;
    /// Returns the files that a directive includes. Returns `None` for other directives, and if the path has an
    /// undefined variable; the directive is then kept. `known`: the directives before it, one list for each file and
    /// block that contains it, outermost first.
    fn request(&self, directive: &Directive, known: &[Vec<Directive>]) -> Option<IncludeRequest>;
    /// Returns the folder of relative paths. `file`: the file with the directive.
    fn folder(&self, file: &Path) -> PathBuf;
    /// Adapts the directives of a file to the arguments of the directive that includes it.
    fn adapt(&self, directives: Vec<Directive>, _include: &Directive) -> Vec<Directive> {
        directives
    }
}

/// Reader of included files.
pub(crate) struct IncludeReader<'a> {
    environment: &'a dyn Environment,
    rules: &'a dyn IncludeRules,
    pub sources: SourceMap,
    /// Notes about files that were not read.
    pub notes: Vec<Note>,
    /// Directives of the files that have been read.
    trees: HashMap<PathBuf, Vec<Directive>>,
    /// Directives read so far, one list for each file and block that is being read.
    known: Vec<Vec<Directive>>,
    /// Files that are being read, from the outermost to the innermost.
    open: Vec<PathBuf>,
    /// Size of the files that have been read.
    bytes: usize,
    /// Number of directives that have been inserted.
    inserted: usize,
}

impl<'a> IncludeReader<'a> {
    pub fn new(environment: &'a dyn Environment, rules: &'a dyn IncludeRules) -> IncludeReader<'a> {
        IncludeReader {
            environment,
            rules,
            sources: SourceMap::default(),
            notes: Vec::new(),
            trees: HashMap::new(),
            known: Vec::new(),
            open: Vec::new(),
            bytes: 0,
            inserted: 0,
        }
    }

    /// Reads a file with its includes.
    pub fn read(&mut self, file: &Path, text: &str) -> Result<Vec<Directive>, ImportError> {
        let name = file.display().to_string();
        let offset = self.sources.add(&name, text);
        self.bytes += text.len();
        let mut tree = self.rules.read(text).map_err(|error| ImportError {
            file: name,
            ..ImportError::from(error)
        })?;
        shift(&mut tree, offset);
        self.open.push(file.to_owned());
        let expanded = self.expand(tree, file);
        self.open.pop();
        expanded
    }

    /// Replaces the directives that include files by the directives of these files.
    fn expand(&mut self, tree: Vec<Directive>, file: &Path) -> Result<Vec<Directive>, ImportError> {
        self.known.push(Vec::with_capacity(tree.len()));
        for mut directive in tree {
            if let Some(request) = self.rules.request(&directive, &self.known) {
                match self.files(&directive, &request, file) {
                    Some(files) => {
                        for file in files {
                            let inserted = self.insert(&directive, &file)?;
                            self.add(inserted);
                        }
                    }
                    None if request.may_be_snippet => self.add([directive]),
                    None => {}
                }
                continue;
            }
            if let Some(block) = directive.block.take() {
                directive.block = Some(self.expand(block, file)?);
            }
            self.add([directive]);
        }
        Ok(self.known.pop().unwrap_or_default())
    }

    /// Appends directives to those of the innermost file or block.
    fn add(&mut self, directives: impl IntoIterator<Item = Directive>) {
        if let Some(level) = self.known.last_mut() {
            level.extend(directives);
        }
    }

    /// Returns the files of a request. If there is no such file, returns `None`, and adds a note unless the directive
    /// may name a snippet.
    fn files(&mut self, directive: &Directive, request: &IncludeRequest, file: &Path) -> Option<Vec<PathBuf>> {
        let path = self.rules.folder(file).join(&request.path);
        let found = match self.environment.kind(&path) {
            Some(FileKind::File) => Ok(vec![path.clone()]),
            // A folder is included with the files of all folders in it.
            Some(FileKind::Directory) => {
                let levels = (1..=MAX_FOLDER_DEPTH).map(|depth| {
                    let below: PathBuf = std::iter::repeat_n("*", depth).collect();
                    self.environment.matching(&path.join(below))
                });
                levels.collect::<Result<Vec<_>, _>>().map(|levels| levels.concat())
            }
            _ => self.environment.matching(&path),
        };
        match found {
            Ok(files) if !files.is_empty() => return Some(files),
            _ if request.may_be_snippet => {}
            Err(error) => self.skip(directive, &error.to_string()),
            Ok(_) => {
                // A pattern in an existing folder may match no file. A pattern with `[` is reported, because only `*`
                // and `?` are wildcards here, so matching files may exist.
                let is_pattern = request.path.contains(['*', '?']) && !request.path.contains('[');
                let folder = path
                    .parent()
                    .filter(|folder| !folder.to_string_lossy().contains(['*', '?']));
                let has_folder =
                    folder.is_some_and(|folder| self.environment.kind(folder) == Some(FileKind::Directory));
                if is_pattern && has_folder {
                    self.notes.unneeded(directive, "no file matches");
                } else {
                    self.skip(directive, "there is no such file");
                }
            }
        }
        None
    }

    /// Notes that a file was not read, and may contain restrictions.
    fn skip(&mut self, directive: &Directive, reason: &str) {
        self.notes.skip(
            directive,
            &format!("{MAY_RESTRICT_ACCESS}: the file was not read: {reason}"),
        );
    }

    /// Returns the directives of a file that is included.
    fn insert(&mut self, include: &Directive, file: &Path) -> Result<Vec<Directive>, ImportError> {
        if self.open.iter().any(|open| open == file) || self.open.len() > MAX_DEPTH {
            self.skip(
                include,
                &format!("it includes itself, or the depth exceeds {MAX_DEPTH}"),
            );
            return Ok(Vec::new());
        }
        if !self.trees.contains_key(file) {
            let text = match self.environment.read(file) {
                Ok(text) if self.bytes + text.len() <= MAX_TOTAL_BYTES => text,
                Ok(_) => {
                    let limit = MAX_TOTAL_BYTES >> 20;
                    self.skip(include, &format!("{}: all files exceed {limit} MiB", file.display()));
                    return Ok(Vec::new());
                }
                Err(error) => {
                    self.skip(include, &format!("{}: {error}", file.display()));
                    return Ok(Vec::new());
                }
            };
            let tree = self.read(file, &text)?;
            self.trees.insert(file.to_owned(), tree);
        }
        let tree = self.trees.get(file).cloned().unwrap_or_default();
        self.inserted += size(&tree);
        if self.inserted > MAX_INSERTED {
            self.skip(
                include,
                &format!("included files have more than {MAX_INSERTED} directives"),
            );
            return Ok(Vec::new());
        }
        Ok(self.rules.adapt(tree, include))
    }
}

/// Returns the nearest folder above `file` that contains one of the files `markers`; otherwise the folder of `file`.
pub(crate) fn root_folder(environment: &dyn Environment, file: &Path, markers: &[&str]) -> PathBuf {
    let is_root = |folder: &&Path| {
        markers
            .iter()
            .any(|marker| environment.kind(&folder.join(marker)) == Some(FileKind::File))
    };
    let folder = file.ancestors().skip(1).find(is_root).or(file.parent());
    folder.unwrap_or(Path::new("")).to_owned()
}

/// Returns the number of directives in a list, with their blocks.
pub(crate) fn size(directives: &[Directive]) -> usize {
    directives.iter().map(|directive| 1 + size(directive.children())).sum()
}

/// Adds the number of lines of earlier files to the lines of directives.
fn shift(directives: &mut [Directive], offset: usize) {
    for directive in directives {
        directive.line += offset;
        if let Some(block) = &mut directive.block {
            shift(block, offset);
        }
    }
}
