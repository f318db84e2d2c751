//! Results as named columns, the form in which they leave for Python: with nulls, units and a sentence on each column.
//!
//! A type of rows is described once, by [`row!`](crate::row): a field is a column, its type says what values are and in which unit.
//! [`table!`](crate::table) is for what is only put together in a table.

use std::borrow::Cow;
use std::slice::IterMut;

use crate::units::{Bytes, Rate, Span, Time};

/// Values of which some are unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maybe<T> {
    values: Vec<T>,
    known: Vec<bool>,
}

impl<T: Copy + Default> Maybe<T> {
    /// Puts a value, or that it is unknown, behind the others.
    pub fn push(&mut self, value: Option<T>) {
        self.values.push(value.unwrap_or_default());
        self.known.push(value.is_some());
    }

    /// The values, of which unknown ones mean nothing, and which are known.
    pub fn into_parts(self) -> (Vec<T>, Vec<bool>) {
        (self.values, self.known)
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + '_ {
        self.values.iter().zip(&self.known).map(|(&value, &known)| known.then_some(value))
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Ids.
    U32(Vec<u32>),
    /// Counts, times in ps, amounts in bytes.
    U64(Vec<u64>),
    /// Sums and integrals beyond 64 bits, and numbers with fractions.
    F64(Vec<f64>),
    /// Ids that may be unknown.
    MaybeU32(Maybe<u32>),
    /// Counts, times and amounts that may be unknown.
    MaybeU64(Maybe<u64>),
    /// Numbers with fractions that may be unknown.
    MaybeF64(Maybe<f64>),
    /// Names.
    Text(Vec<String>),
    /// Whole files.
    Blob(Vec<Vec<u8>>),
}

/// What the variants of [`Values`] hold, by their names.
pub mod kinds {
    use super::Maybe;

    /// See [`super::Values::U32`].
    pub type U32 = Vec<u32>;
    /// See [`super::Values::U64`].
    pub type U64 = Vec<u64>;
    /// See [`super::Values::F64`].
    pub type F64 = Vec<f64>;
    /// See [`super::Values::MaybeU32`].
    pub type MaybeU32 = Maybe<u32>;
    /// See [`super::Values::MaybeU64`].
    pub type MaybeU64 = Maybe<u64>;
    /// See [`super::Values::MaybeF64`].
    pub type MaybeF64 = Maybe<f64>;
    /// See [`super::Values::Text`].
    pub type Text = Vec<String>;
    /// See [`super::Values::Blob`].
    pub type Blob = Vec<Vec<u8>>;
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, which ends in the unit.
    pub name: Cow<'static, str>,
    /// What it says, where its name is not enough; empty otherwise.
    pub about: &'static str,
    /// A value for each row.
    pub values: Values,
}

impl Column {
    /// What it says, in a sentence; empty where nobody has written it.
    pub fn meaning(&self) -> &'static str {
        let own = self.about.trim();
        if own.is_empty() { common(&self.name) } else { own }
    }

    /// The unit of its values, as its name has it; nothing for counts, ids, ratios and texts.
    pub fn unit(&self) -> Option<&'static str> {
        // The longer ends first.
        let known = [
            ("_ps_per_byte", "ps/B"),
            ("byte_ps", "B ps"),
            ("_per_s", "1/s"),
            ("_bytes", "B"),
            ("bytes", "B"),
            ("_bps", "bit/s"),
            ("_bit", "bit"),
            ("_ps", "ps"),
            ("_s", "s"),
        ];
        known.iter().find(|(end, _)| self.name.ends_with(end)).map(|&(_, unit)| unit)
    }

    /// Whether values may be unknown.
    pub fn is_nullable(&self) -> bool {
        matches!(self.values, Values::MaybeU32(_) | Values::MaybeU64(_) | Values::MaybeF64(_))
    }
}

/// What columns say that are the same in many tables.
fn common(name: &str) -> &'static str {
    match name {
        "replicate" => "The run of the batch: its place among the seeds, from 0.",
        "port" => "Id of the port.",
        "class" => "The traffic class.",
        "flow" => "Id of the flow.",
        "traffic" => "Id of the entry of traffic.",
        "connection" => "Id of the connection.",
        "pool" => "The part, by its number in `pool_names`.",
        "prober" => "Id of the estimator.",
        "t_ps" => "End of the interval; what happens at this very time belongs to the next one.",
        _ => "",
    }
}

/// A table: its columns by name, all of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Its columns in order.
    pub columns: Vec<Column>,
}

impl Table {
    /// A table of `rows`, each after as many ids as `ids` has names.
    pub fn new<const N: usize, R: Row>(
        name: &'static str,
        ids: [&'static str; N],
        rows: impl IntoIterator<Item = ([u32; N], R)>,
    ) -> Table {
        Series::new(name, ids, rows.into_iter()).next(usize::MAX)
    }

    /// What the ids in the column `id` of other tables stand for.
    pub fn of_names<'a>(
        name: &'static str,
        about: &'static str,
        id: &'static str,
        names: impl IntoIterator<Item = &'a &'a str>,
    ) -> Table {
        let names: Vec<String> = names.into_iter().map(ToString::to_string).collect();
        let ids = Column { name: id.into(), about: "Id.", values: Values::U32((0..names.len() as u32).collect()) };
        let names = Column { name: "name".into(), about: "What it is called.", values: Values::Text(names) };
        Table { name, about, columns: vec![ids, names] }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| match &column.values {
            Values::U32(values) => values.len(),
            Values::U64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::MaybeU32(values) => values.values.len(),
            Values::MaybeU64(values) => values.values.len(),
            Values::MaybeF64(values) => values.values.len(),
            Values::Text(values) => values.len(),
            Values::Blob(values) => values.len(),
        })
    }
}

/// Rows on their way into tables.
pub struct Series<'r>(Box<dyn FnMut(usize) -> Table + 'r>);

impl<'r> Series<'r> {
    /// Of `rows`, each after as many ids as `ids` has names.
    pub fn new<const N: usize, R: Row>(
        name: &'static str,
        ids: [&'static str; N],
        mut rows: impl Iterator<Item = ([u32; N], R)> + 'r,
    ) -> Series<'r> {
        let mut columns = Vec::new();
        ids.iter().for_each(|id| u32::columns(id, "", &mut columns));
        R::columns("", "", &mut columns);
        let empty = Table { name, about: R::ABOUT.trim_ascii(), columns };
        Series(Box::new(move |most| {
            let mut table = empty.clone();
            for (ids, row) in rows.by_ref().take(most) {
                let mut columns = table.columns.iter_mut();
                ids.iter().for_each(|id| id.push(&mut columns));
                row.push(&mut columns);
            }
            table
        }))
    }

    /// A table of the next rows, at most so many.
    pub fn next(&mut self, most: usize) -> Table {
        self.0(most)
    }
}

/// What fills a column, or several.
pub trait Cells {
    /// Adds these columns without values, where a row calls them `name` and says `about` them.
    fn columns(name: &'static str, about: &'static str, to: &mut Vec<Column>);

    /// Gives each of them a value.
    fn push(&self, to: &mut IterMut<'_, Column>);
}

/// What fills a row.
pub trait Row: Cells {
    /// What a row is.
    const ABOUT: &'static str;
}

impl<T: Cells> Cells for &T {
    fn columns(name: &'static str, about: &'static str, to: &mut Vec<Column>) {
        T::columns(name, about, to);
    }

    fn push(&self, to: &mut IterMut<'_, Column>) {
        T::push(self, to);
    }
}

impl<T: Row> Row for &T {
    const ABOUT: &'static str = T::ABOUT;
}

macro_rules! cells {
    ($($type:ty, $unit:literal, $kind:ident: |$value:ident| $held:expr;)+) => {$(
        impl Cells for $type {
            fn columns(name: &'static str, about: &'static str, to: &mut Vec<Column>) {
                let name = if $unit.is_empty() { name.into() } else { [name, $unit].concat().into() };
                to.push(Column { name, about, values: Values::$kind(Default::default()) });
            }

            fn push(&self, to: &mut IterMut<'_, Column>) {
                let $value = self;
                match to.next() {
                    Some(Column { values: Values::$kind(values), .. }) => values.push($held),
                    _ => unreachable!("a row has the columns of its type"),
                }
            }
        }
    )+};
}

cells! {
    u8, "", U32: |value| (*value).into();
    u32, "", U32: |value| *value;
    u64, "", U64: |value| *value;
    bool, "", U32: |value| (*value).into();
    u128, "", F64: |value| *value as f64;
    f64, "", F64: |value| *value;
    Time, "_ps", U64: |value| value.ps();
    Span, "_ps", U64: |value| value.ps();
    Bytes, "_bytes", U64: |value| value.count();
    Rate, "_bps", U64: |value| value.bps();
    Option<u32>, "", MaybeU32: |value| *value;
    Option<u64>, "", MaybeU64: |value| *value;
    Option<f64>, "", MaybeF64: |value| *value;
    Option<Time>, "_ps", MaybeU64: |value| value.map(Time::ps);
    Option<Span>, "_ps", MaybeU64: |value| value.map(Span::ps);
    Option<Bytes>, "_bytes", MaybeU64: |value| value.map(Bytes::count);
    Option<Rate>, "_bps", MaybeU64: |value| value.map(Rate::bps);
    String, "", Text: |value| value.clone();
    Vec<u8>, "", Blob: |value| value.clone();
}

/// What has a table of its own has no column.
impl<const N: usize> Cells for [u64; N] {
    fn columns(_: &'static str, _: &'static str, _: &mut Vec<Column>) {}
    fn push(&self, _: &mut IterMut<'_, Column>) {}
}

/// What has an id: its place among the names of its type.
pub trait Named: Copy + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// The names, in order.
    const NAMES: &'static [&'static str];

    /// The place of its name.
    fn id(self) -> u32;

    /// Its name.
    fn name(self) -> &'static str {
        Self::NAMES[self.id() as usize]
    }
}

/// The id behind all others stands for none.
impl<T: Named> Cells for Option<T> {
    fn columns(name: &'static str, about: &'static str, to: &mut Vec<Column>) {
        u32::columns(name, about, to);
    }

    fn push(&self, to: &mut IterMut<'_, Column>) {
        self.map_or(T::NAMES.len() as u32, T::id).push(to);
    }
}

/// An enum whose variants have names, which is [`Named`](crate::columns::Named).
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($(#[doc = $doc:literal])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $type { $($(#[doc = $doc])* $variant),+ }

        impl $crate::columns::Named for $type {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn id(self) -> u32 {
                self as u32
            }
        }

        impl $crate::columns::Cells for $type {
            fn columns(name: &'static str, about: &'static str, to: &mut Vec<$crate::columns::Column>) {
                <u32 as $crate::columns::Cells>::columns(name, about, to);
            }

            fn push(&self, to: &mut std::slice::IterMut<'_, $crate::columns::Column>) {
                <u32 as $crate::columns::Cells>::push(&(*self as u32), to);
            }
        }
    };
}

/// A struct that is a [`Row`](crate::columns::Row): each field is a column, called as after `=>` or as the field, with the unit of its
/// type. What is put together of several columns adds them all.
#[macro_export]
macro_rules! row {
    ($(#[doc = $about:literal])+ $(#[derive($($derived:ident),+)])? $(#[repr($repr:ident)])? $vis:vis struct $type:ident {
        $($(#[doc = $doc:literal])* $field_vis:vis $field:ident: $of:ty $(=> $name:ident)?),+ $(,)?
    }) => {
        $(#[doc = $about])+
        $(#[derive($($derived),+)])?
        $(#[repr($repr)])?
        #[allow(missing_docs)] // what columns say that many tables have is said once
        $vis struct $type { $($(#[doc = $doc])* $field_vis $field: $of),+ }

        impl $crate::columns::Cells for $type {
            fn columns(_: &'static str, _: &'static str, to: &mut Vec<$crate::columns::Column>) {
                $(<$of as $crate::columns::Cells>::columns([$(stringify!($name),)? stringify!($field)][0], concat!($($doc),*), to);)+
            }

            fn push(&self, to: &mut std::slice::IterMut<'_, $crate::columns::Column>) {
                $(<$of as $crate::columns::Cells>::push(&self.$field, to);)+
            }
        }

        impl $crate::columns::Row for $type {
            const ABOUT: &'static str = concat!($($about),+);
        }
    };
}

/// A [`Table`] of rows, with a variant of [`Values`] for each column:
/// `table!("name", "What a row is.": rows => |row| /// What it says. column: KIND = value, ...)`.
#[macro_export]
macro_rules! table {
    ($name:literal, $about:literal: $rows:expr => |$row:pat_param|
        $($(#[doc = $doc:literal])* $column:ident: $kind:ident = $value:expr),+ $(,)?) => {{
        // Fields, so that the names of columns do not hide what the values are made of.
        #[derive(Default)]
        struct Columns {
            $($column: $crate::columns::kinds::$kind),+
        }
        let mut columns = Columns::default();
        for $row in $rows {
            $(columns.$column.push($value);)+
        }
        $crate::columns::Table {
            name: $name,
            about: $about,
            columns: vec![$($crate::columns::Column {
                name: stringify!($column).into(),
                about: concat!($($doc),*),
                values: $crate::columns::Values::$kind(columns.$column),
            }),+],
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Table {
        table!("levels", "A level.": [(1, Some(2), "a"), (3, None, "b")] => |(low, high, name)|
            port: U32 = low,
            /// Where it ends;
            /// unknown for the last one.
            high_bytes: MaybeU64 = high,
            name: Text = name.to_string(),
        )
    }

    #[test]
    fn a_table_keeps_its_rows_with_what_is_unknown() {
        let table = made();
        assert_eq!(table.columns[0].values, Values::U32(vec![1, 3]));
        let Values::MaybeU64(high) = &table.columns[1].values else { panic!("high_bytes may be unknown") };
        assert_eq!(high.iter().collect::<Vec<_>>(), [Some(2), None]);
        assert_eq!(high.clone().into_parts(), (vec![2, 0], vec![true, false]));
        assert_eq!(table.columns.iter().map(Column::is_nullable).collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn a_column_says_what_it_is_and_in_which_unit() {
        let table = made();
        let reported = |place: usize| (table.columns[place].meaning(), table.columns[place].unit());
        assert_eq!(reported(0), ("Id of the port.", None));
        assert_eq!(reported(1), ("Where it ends; unknown for the last one.", Some("B")));
        let named =
            |name: &'static str| Column { name: name.into(), about: "", values: Values::F64(Vec::new()) }.unit();
        assert_eq!(named("queue_byte_ps"), Some("B ps"));
        assert_eq!(named("rate_bps"), Some("bit/s"));
        assert_eq!(named("line_gap_ps_per_byte"), Some("ps/B"));
        assert_eq!(named("drops"), None);
    }
}
