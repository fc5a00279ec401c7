//! Directives of a configuration: the tree that all readers return.

use crate::note::shown;

/// Maximum depth of blocks. Configurations in use have about five levels.
const MAX_DEPTH: usize = 32;

/// A directive with its arguments, and its block if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive {
    pub name: String,
    pub arguments: Vec<String>,
    /// Line of the name, counted from 1.
    pub line: usize,
    pub block: Option<Vec<Directive>>,
}

/// Error of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub line: usize,
    pub message: String,
}

impl SyntaxError {
    pub fn new(line: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError {
            line,
            message: message.into(),
        }
    }
}

impl Directive {
    pub fn new(name: impl Into<String>, arguments: Vec<String>, line: usize) -> Directive {
        Directive {
            name: name.into(),
            arguments,
            line,
            block: None,
        }
    }

    /// Returns true if this is the name of the directive. Upper and lower case are not distinguished.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns the argument at an index; empty if it is missing.
    pub fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// Returns the arguments as string slices, for matching on their form.
    pub fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Returns the arguments in lower case.
    pub fn lowercase_words(&self) -> Vec<String> {
        self.arguments.iter().map(|word| word.to_ascii_lowercase()).collect()
    }

    /// Returns the directives of the block; empty if there is no block.
    pub fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns the directive on one line, shortened, for messages.
    pub fn text(&self) -> String {
        let mut text = self.name.clone();
        // `shown` shortens the text, so thousands of arguments need not be copied.
        for argument in self.arguments.iter().take(16) {
            text.push(' ');
            text.push_str(argument);
        }
        shown(&text)
    }
}

/// Builds a tree of directives, with a bound on its depth.
pub(crate) struct TreeBuilder {
    open: Vec<Directive>,
    /// Directives of the top level, then the directives of each open block, from the outermost to the innermost.
    lists: Vec<Vec<Directive>>,
}

impl TreeBuilder {
    pub fn new() -> TreeBuilder {
        TreeBuilder {
            open: Vec::new(),
            lists: vec![Vec::new()],
        }
    }

    /// Adds a directive without a block.
    pub fn add(&mut self, directive: Directive) {
        if let Some(list) = self.lists.last_mut() {
            list.push(directive);
        }
    }

    /// Begins the block of a directive.
    pub fn open(&mut self, directive: Directive) -> Result<(), SyntaxError> {
        if self.open.len() == MAX_DEPTH {
            let message = format!("blocks are nested more than {MAX_DEPTH} levels deep");
            return Err(SyntaxError::new(directive.line, message));
        }
        self.open.push(directive);
        self.lists.push(Vec::new());
        Ok(())
    }

    /// Returns the directive of the innermost open block; `None` if no block is open.
    pub fn innermost(&self) -> Option<&Directive> {
        self.open.last()
    }

    /// Ends the innermost block. Returns false if no block is open.
    pub fn close(&mut self) -> bool {
        let (Some(mut directive), Some(list)) = (self.open.pop(), self.lists.pop()) else {
            return false;
        };
        directive.block = Some(list);
        self.add(directive);
        true
    }

    /// Returns the tree, or an error that names the block that is not closed.
    pub fn finish(mut self) -> Result<Vec<Directive>, SyntaxError> {
        match self.open.last() {
            Some(open) => Err(SyntaxError::new(
                open.line,
                format!("the block of `{}` is not closed", open.text()),
            )),
            None => Ok(self.lists.pop().unwrap_or_default()),
        }
    }
}
