//! Names ahead: the way to a file is brought into the kernel's memory, so that opening it waits for no disk.

use std::ffi::CString;
use std::future::Future;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use io_uring::types::OpenHow;
use rustix::fs::{OFlags, ResolveFlags};

use super::file_operation::FileOperation;
use super::file_operations::{FileCommand, PathLookup};
use super::{Driver, current};

/// Ends when the kernel knows all names of the way, or could not find them out: who opens the file is told.
pub struct PathPrefetch(FileOperation);

/// Looks a name up on this thread's ring, as far as the kernel keeps it below `directory` by `resolve`. `None`: there is no
/// ring, or it has enough to do.
pub(crate) fn prefetch_path(directory: Arc<dyn AsFd>, relative: &[u8], resolve: ResolveFlags) -> Option<PathPrefetch> {
    prefetch_path_on(&current()?, directory, relative, resolve)
}

pub(super) fn prefetch_path_on(
    driver: &Rc<Driver>,
    directory: Arc<dyn AsFd>,
    relative: &[u8],
    resolve: ResolveFlags,
) -> Option<PathPrefetch> {
    // Opened for its place alone: that needs no right to its content, and wakes no device.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let lookup = PathLookup {
        directory,
        path: CString::new(relative).ok()?,
        how: OpenHow::new().flags(flags.bits().into()).resolve(resolve.bits()),
    };
    FileOperation::start(driver, FileCommand::Lookup(Box::new(lookup))).map(PathPrefetch)
}

impl Future for PathPrefetch {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        self.0.poll(context).map(|result| result != -libc::ECANCELED)
    }
}
