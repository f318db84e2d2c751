//! Results as named columns, the form in which they leave for Python.

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Ids.
    U32(Vec<u32>),
    /// Counts, times in ps, amounts in bytes.
    U64(Vec<u64>),
    /// Sums and integrals beyond 64 bits, and what may be unknown: not a number.
    F64(Vec<f64>),
    /// Names.
    Text(Vec<String>),
    /// Whole files.
    Blob(Vec<Vec<u8>>),
}

/// A table: its columns by name, all of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// Its columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// The same table with the columns of another, of as many rows, behind its own.
    #[must_use]
    pub fn with(mut self, other: Table) -> Table {
        self.columns.extend(other.columns);
        self
    }
}

/// A [`Table`] of rows: `table!("name": rows => |row| column: KIND = value, ...)`, with a [`Column`] variant for each kind.
#[macro_export]
macro_rules! table {
    ($name:literal: $rows:expr => |$row:pat_param| $($column:ident: $kind:ident = $value:expr),+ $(,)?) => {{
        // Fields, so that the names of columns do not hide what the values are made of.
        #[expect(non_camel_case_types, reason = "one type for each column")]
        struct Columns<$($column),+> {
            $($column: Vec<$column>),+
        }
        let mut columns = Columns { $($column: Vec::new()),+ };
        for $row in $rows {
            $(columns.$column.push($value);)+
        }
        $crate::columns::Table {
            name: $name,
            columns: vec![$((stringify!($column), $crate::columns::Column::$kind(columns.$column))),+],
        }
    }};
}
