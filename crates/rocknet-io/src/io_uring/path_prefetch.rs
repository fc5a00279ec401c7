//! Path prefetch: looks a path up in the kernel, so that opening the file later does not wait for a disk.

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

/// Lookup of a path in progress. Resolves to true when the lookup has ended, even with an error, because opening the
/// file returns the same error. Resolves to false if the ring has failed.
pub struct PathPrefetch(FileOperation);

/// Looks a path up below `directory` on this thread's ring, with the restrictions `resolve`. Returns `None` if there is
/// no ring, or if the ring has too many operations.
pub(crate) fn prefetch_path(directory: Arc<dyn AsFd>, relative: &[u8], resolve: ResolveFlags) -> Option<PathPrefetch> {
    prefetch_path_on(&current()?, directory, relative, resolve)
}

/// Looks a path up on the given ring, like [`prefetch_path`].
pub(super) fn prefetch_path_on(
    driver: &Rc<Driver>,
    directory: Arc<dyn AsFd>,
    relative: &[u8],
    resolve: ResolveFlags,
) -> Option<PathPrefetch> {
    // `O_PATH` requires no read permission and does not activate devices.
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
