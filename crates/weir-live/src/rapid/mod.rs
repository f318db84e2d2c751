//! Rapid over UDP between two hosts.
//!
//! Both ends are the machines of the core that run in the simulator, [`weir_core::tcp::Sender`] with
//! [`weir_core::cc::Rapid`] and [`weir_core::tcp::Receiver`]: their segments travel in datagrams. What is added here is
//! who may talk to whom ([`keys`], [`wire`], [`service`]), and time: departures are awaited by sleeping and a short
//! spin ([`send`]), arrivals are the kernel's stamps ([`serve`]).
//!
//! A session begins with four datagrams: hello, challenge, open, accept. The first and the third show that the sender
//! holds the secret, the second and the third that it receives at the address that it sends from.
//!
//! Reading order: [`keys`], [`wire`], [`service`] and [`timing`], which are pure; then [`greet`], [`send`], [`serve`].

pub mod greet;
pub mod keys;
pub mod send;
pub mod serve;
pub mod service;
pub mod timing;
pub mod wire;
