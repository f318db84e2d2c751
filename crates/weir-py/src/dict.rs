//! Dictionaries as answers.

/// Puts fields of a value into a dictionary, under their own names.
macro_rules! set_fields {
    ($answer:expr, $from:expr, [$($field:ident),+ $(,)?]) => {
        $($answer.set_item(stringify!($field), $from.$field)?;)+
    };
}
