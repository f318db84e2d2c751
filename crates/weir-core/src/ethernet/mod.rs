//! Congestion management of Ethernet, reported in numbers: how long the queue is, when feedback came.
//!
//! 1. [`sampler`]: which frames a congestion point looks at.
//! 2. [`bcn`], [`qcn`], [`dcqcn`]: the point that measures, and the point that obeys.
//! 3. [`recovery`]: self-increase in stages, common to QCN and DCQCN.
//! 4. [`reaction`]: one limiter for any scheme, its meter, and the pacing of frames at its rate.
//! 5. [`pause`]: thresholds that send PAUSE, and how long it holds; [`pfc`]: the same for each class; [`headroom`]: what still comes after it; [`watchdog`]: who lets go a class that is held for too long.
//!
//! All models follow one contract. *What happened up to now comes first*: [`reaction::ReactionPoint::advance`] takes
//! all steps that were due by a time, and is called before feedback, and before a rate is read; when the next step is
//! due, `poll_timeout` says. No model keeps a clock or allocates.

pub mod bcn;
pub mod dcqcn;
pub mod headroom;
pub mod pause;
pub mod pfc;
pub mod qcn;
pub mod reaction;
pub mod recovery;
pub mod sampler;
pub mod watchdog;
