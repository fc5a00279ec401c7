//! TUN device: a network interface whose packets this program reads and writes.
#![allow(unsafe_code)]

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::fs::File;
use std::io;

/// Attaches the open file to an interface, which is created. `linux/if_tun.h` declares the argument as `int`, but the
/// kernel reads and writes a `struct ifreq`.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
/// Packets of IP without a link layer.
const IFF_TUN: i16 = 1;
/// Packets without a header of the device.
const IFF_NO_PI: i16 = 0x1000;
/// Maximum length of an interface's name (`IFNAMSIZ`), including the final 0.
const NAME_SIZE: usize = 16;

/// `struct ifreq` of Linux, with its union reduced to the flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_SIZE],
    flags: i16,
    padding: [u8; 22],
}

/// Creates an interface in the network namespace of this thread. It disappears when the file is closed. Packets have at
/// most the length of the interface's MTU, because the device offers the kernel no segmentation offload.
pub fn create(name: &str) -> io::Result<File> {
    let mut request = InterfaceRequest {
        name: [0; NAME_SIZE],
        flags: IFF_TUN | IFF_NO_PI,
        padding: [0; 22],
    };
    let name = name.as_bytes();
    if name.len() >= NAME_SIZE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..name.len()].copy_from_slice(name);
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which has the layout and the size (40 bytes on 64-bit
    // systems) of `InterfaceRequest`.
    unsafe { ioctl(&file, Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request)) }?;
    Ok(file)
}
