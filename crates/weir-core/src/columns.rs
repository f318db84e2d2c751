//! Results as named columns, the form in which they leave for Python: with nulls, units and a sentence on each column.

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
    pub name: &'static str,
    /// What it says, where its name is not enough; empty otherwise.
    pub about: &'static str,
    /// A value for each row.
    pub values: Values,
}

impl Column {
    /// What it says, in a sentence; empty where nobody has written it.
    pub fn meaning(&self) -> &'static str {
        let own = self.about.trim();
        if own.is_empty() { common(self.name) } else { own }
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
        "flow" => "Id of the flow.",
        "traffic" => "Id of the entry of traffic.",
        "connection" => "Id of the connection.",
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
    /// The same table with the columns of another, of as many rows, behind its own.
    #[must_use]
    pub fn with(mut self, other: Table) -> Table {
        self.columns.extend(other.columns);
        self
    }
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
                name: stringify!($column),
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
        let named = |name| Column { name, about: "", values: Values::F64(Vec::new()) }.unit();
        assert_eq!(named("queue_byte_ps"), Some("B ps"));
        assert_eq!(named("rate_bps"), Some("bit/s"));
        assert_eq!(named("line_gap_ps_per_byte"), Some("ps/B"));
        assert_eq!(named("drops"), None);
    }
}
