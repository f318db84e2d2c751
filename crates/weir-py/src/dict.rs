//! Dictionaries as answers.

/// A dictionary: `dict!(py; "name": value, ...)`. Fields of a value under their own names follow it: `; value => field field ...`.
macro_rules! dict {
    ($py:expr; $($name:literal: $value:expr),* $(,)? $(; $from:expr => $($field:ident)+)*) => {{
        let answer = pyo3::types::PyDict::new($py);
        $(answer.set_item($name, $value)?;)*
        $($(answer.set_item(stringify!($field), $from.$field)?;)+)*
        answer
    }};
}
