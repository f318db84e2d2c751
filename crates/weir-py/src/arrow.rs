//! Tables as Arrow. Whoever reads them by the PyCapsule interface, such as polars, takes the memory as it is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{
    Array, ArrayRef, Float64Array, LargeBinaryArray, RecordBatch, RecordBatchReader, StringViewArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use weir_core::columns::{Column, Maybe, Table, Values};

/// A table in memory. Its schema says of each column its unit and what it means.
#[pyclass(frozen, name = "Table", module = "weirlab._core")]
pub(crate) struct ArrowTable(RecordBatch);

#[pymethods]
impl ArrowTable {
    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// A table of another library, by the Arrow PyCapsule interface for streams; of several batches, the first.
    #[staticmethod]
    fn of(frame: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name holds such a stream, which is taken over here and left empty.
        let mut batches = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }.map_err(refused)?;
        let schema = batches.schema();
        Ok(Self(batches.next().transpose().map_err(refused)?.unwrap_or_else(|| RecordBatch::new_empty(schema))))
    }

    /// The values of a column, None for what is unknown.
    fn values<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.column(column)?;
        let any = column.as_any();
        if let Some(values) = any.downcast_ref::<UInt64Array>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(values) = any.downcast_ref::<UInt32Array>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(values) = any.downcast_ref::<Float64Array>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(values) = any.downcast_ref::<StringViewArray>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else {
            Err(PyTypeError::new_err(format!("values of the type {}", column.data_type())))
        }
    }

    /// Sum (or, with `greatest`, maximum) of a column by replicate, over the rows of which the column `key` is one of `ids` (None: any) and
    /// the time is in the `window` (after the first, until the second). Replicates without such a row are absent; unknown
    /// values do not count, and are None where all are.
    #[pyo3(signature = (column, key, ids, window=None, *, greatest=false))]
    #[expect(clippy::needless_pass_by_value, reason = "it comes from Python")]
    fn totals<'py>(
        &self,
        py: Python<'py>,
        column: &str,
        key: &str,
        ids: Option<Vec<u32>>,
        window: Option<(u64, u64)>,
        greatest: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows = Rows::of(self, key, ids.as_deref())?;
        let times = window.map(|window| Ok::<_, PyErr>((self.numbers("t_ps")?, window))).transpose()?;
        let chosen = rows.chosen().filter(|&(row, _, _)| {
            times.as_ref().is_none_or(|(times, (low, high))| {
                let time = times.value(row);
                *low < time && time <= *high
            })
        });
        let answer = PyDict::new(py);
        let values = self.column(column)?;
        if let Some(values) = values.as_any().downcast_ref::<Float64Array>() {
            let value = |row| values.is_valid(row).then(|| values.value(row));
            let found = by_replicate(chosen, value, |found: Option<Sum>, value| match found {
                Some(sum) if greatest => Sum::of(sum.value().max(value)),
                Some(sum) => sum.and(value),
                None => Sum::of(value),
            });
            let values = found.into_iter().map(|(replicate, sum)| (replicate, sum.map(|sum| sum.value())));
            values.into_iter().try_for_each(|(replicate, value)| answer.set_item(replicate, value))?;
            return Ok(answer);
        }
        let narrow = values.as_any().downcast_ref::<UInt32Array>();
        let wide = values.as_any().downcast_ref::<UInt64Array>();
        let value = |row| match (narrow, wide) {
            (Some(values), _) if values.is_valid(row) => Some(u128::from(values.value(row))),
            (_, Some(values)) if values.is_valid(row) => Some(u128::from(values.value(row))),
            _ => None,
        };
        if narrow.is_none() && wide.is_none() {
            return Err(PyTypeError::new_err(format!("column '{column}' is of the type {}", values.data_type())));
        }
        let found = by_replicate(chosen, value, |found, value| match found {
            Some(found) if greatest => value.max(found),
            found => value + found.unwrap_or(0),
        });
        found.into_iter().try_for_each(|(replicate, value)| answer.set_item(replicate, value))?;
        Ok(answer)
    }

    /// Whether a column is the sum of others in every row; all hold u64.
    #[expect(clippy::needless_pass_by_value, reason = "it comes from Python")]
    fn adds_up(&self, whole: &str, parts: Vec<String>) -> PyResult<bool> {
        let whole = self.numbers(whole)?;
        let parts = parts.iter().map(|name| self.numbers(name)).collect::<PyResult<Vec<_>>>()?;
        Ok((0..whole.len()).all(|row| {
            u128::from(whole.value(row)) == parts.iter().map(|part| u128::from(part.value(row))).sum::<u128>()
        }))
    }

    /// Those of `ids` that the column `key` does not hold, and whether all rows of each of the others have in each replicate
    /// one that ends at the start of the window, unless that is 0, and one that ends at its end.
    #[expect(clippy::needless_pass_by_value, reason = "it comes from Python")]
    fn covers(&self, key: &str, ids: Vec<u32>, window: (u64, u64)) -> PyResult<(Vec<u32>, bool)> {
        let rows = Rows::of(self, key, Some(&ids))?;
        let times = self.numbers("t_ps")?;
        let mut edges: BTreeMap<(u32, u32), (bool, bool)> = BTreeMap::new();
        for (row, replicate, id) in rows.chosen() {
            let (low, high) = edges.entry((replicate, id)).or_insert((window.0 == 0, false));
            *low |= times.value(row) == window.0;
            *high |= times.value(row) == window.1;
        }
        let known: HashSet<u32> = edges.keys().map(|&(_, id)| id).collect();
        let absent = ids.iter().copied().filter(|id| !known.contains(id)).collect();
        Ok((absent, edges.values().all(|&(low, high)| low && high)))
    }

    /// The schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, self.schema()?, c"arrow_schema")
    }

    /// The table as an array of structures, by the Arrow PyCapsule interface; another schema is not made.
    #[pyo3(signature = (requested_schema=None))]
    #[expect(unused_variables, reason = "whoever asks for another schema casts what it is given")]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let (array, _): (FFI_ArrowArray, _) = to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(refused)?;
        let schema = PyCapsule::new_with_value(py, self.schema()?, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}

impl ArrowTable {
    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| PyKeyError::new_err(format!("no column '{name}'")))
    }

    /// A column of numbers of 64 bits, all of them known.
    fn numbers(&self, name: &str) -> PyResult<&UInt64Array> {
        let wrong = || PyTypeError::new_err(format!("column '{name}' does not hold u64"));
        self.column(name)?.as_any().downcast_ref().ok_or_else(wrong)
    }

    /// A column of ids.
    fn ids(&self, name: &str) -> PyResult<&UInt32Array> {
        let wrong = || PyTypeError::new_err(format!("column '{name}' does not hold u32"));
        self.column(name)?.as_any().downcast_ref().ok_or_else(wrong)
    }

    fn schema(&self) -> PyResult<FFI_ArrowSchema> {
        FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(refused)
    }
}

/// The rows of some ids.
struct Rows<'a> {
    replicates: &'a UInt32Array,
    keys: &'a UInt32Array,
    /// None: any.
    ids: Option<HashSet<u32>>,
}

impl<'a> Rows<'a> {
    fn of(table: &'a ArrowTable, key: &str, ids: Option<&[u32]>) -> PyResult<Self> {
        let ids = ids.map(|ids| ids.iter().copied().collect());
        Ok(Self { replicates: table.ids("replicate")?, keys: table.ids(key)?, ids })
    }

    /// Row, replicate and id of each.
    fn chosen(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        let rows = self.keys.values().iter().zip(self.replicates.values()).enumerate();
        rows.filter(|(_, (id, _))| self.ids.as_ref().is_none_or(|ids| ids.contains(id)))
            .map(|(row, (&id, &replicate))| (row, replicate, id))
    }
}

/// A sum that is rounded once, as `math.fsum` of Python: it does not depend on the order of its parts.
///
/// Source: Shewchuk 1997, adaptive precision floating-point arithmetic: Grow-Expansion, without components that are 0.
struct Sum(Vec<f64>);

impl Sum {
    fn of(value: f64) -> Self {
        Self(vec![value])
    }

    /// The same with one more.
    fn and(mut self, mut value: f64) -> Self {
        let mut kept = 0;
        for place in 0..self.0.len() {
            let part = self.0[place];
            let (large, small) = if value.abs() < part.abs() { (part, value) } else { (value, part) };
            value = large + small;
            let rest = small - (value - large);
            if rest != 0.0 {
                self.0[kept] = rest;
                kept += 1;
            }
        }
        if !value.is_finite() {
            return Self::of(value);
        }
        self.0.truncate(kept);
        self.0.push(value);
        self
    }

    /// The nearest number; of two that are equally near the even one.
    fn value(&self) -> f64 {
        let mut parts = self.0.iter().rev().copied();
        let (mut value, mut rest) = (parts.next().unwrap_or(0.0), 0.0);
        for part in parts.by_ref() {
            let large = value;
            value = large + part;
            rest = part - (value - large);
            if rest != 0.0 {
                break;
            }
        }
        // Half a unit was rounded to even, and what follows says where it belongs.
        if parts.next().is_some_and(|next| next.signum() == rest.signum()) {
            let other = value + 2.0 * rest;
            if other - value == 2.0 * rest {
                value = other;
            }
        }
        value
    }
}

/// The values of the rows of each replicate, joined in their order.
fn by_replicate<V, S>(
    rows: impl Iterator<Item = (usize, u32, u32)>,
    value: impl Fn(usize) -> Option<V>,
    joined: impl Fn(Option<S>, V) -> S,
) -> BTreeMap<u32, Option<S>> {
    let mut found: BTreeMap<u32, Option<S>> = BTreeMap::new();
    // Most rows follow one of their replicate: the map is asked where that changes.
    let (mut last, mut sum) = (None, None);
    for (row, replicate, _) in rows {
        if last != Some(replicate) {
            if let Some(before) = last.replace(replicate) {
                found.insert(before, sum);
            }
            sum = found.remove(&replicate).flatten();
        }
        if let Some(value) = value(row) {
            sum = Some(joined(sum.take(), value));
        }
    }
    if let Some(before) = last {
        found.insert(before, sum);
    }
    found
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("a table has no form in Arrow: {error}"))
}

/// A dictionary of tables. The values move; only texts and files are copied.
pub(crate) fn tables_to_python(py: Python<'_>, tables: Vec<Table>) -> PyResult<Bound<'_, PyDict>> {
    let answer = PyDict::new(py);
    for table in tables {
        answer.set_item(table.name, table_to_python(py, table)?)?;
    }
    Ok(answer)
}

/// One of them.
pub(crate) fn table_to_python(py: Python<'_>, table: Table) -> PyResult<ArrowTable> {
    py.detach(|| record_batch(table)).map(ArrowTable).map_err(refused)
}

fn record_batch(table: Table) -> Result<RecordBatch, ArrowError> {
    let about = HashMap::from([("about".to_owned(), table.about.to_owned())]);
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = table.columns.into_iter().map(to_arrow).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields).with_metadata(about)), arrays)
}

fn to_arrow(column: Column) -> (Field, ArrayRef) {
    let nullable = column.is_nullable();
    let known = [("unit", column.unit().unwrap_or("")), ("meaning", column.meaning())];
    let metadata = known.into_iter().filter(|(_, text)| !text.is_empty());
    let metadata: HashMap<_, _> = metadata.map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
    let array: ArrayRef = match column.values {
        Values::U32(values) => Arc::new(UInt32Array::from(values)),
        Values::U64(values) => Arc::new(UInt64Array::from(values)),
        Values::F64(values) => {
            debug_assert!(!values.iter().any(|value| value.is_nan()), "{}: what is unknown is null", column.name);
            Arc::new(Float64Array::from(values))
        }
        Values::MaybeU32(values) => {
            let (values, known) = parts(values);
            Arc::new(UInt32Array::new(values.into(), known))
        }
        Values::MaybeU64(values) => {
            let (values, known) = parts(values);
            Arc::new(UInt64Array::new(values.into(), known))
        }
        Values::MaybeF64(values) => {
            let (values, known) = parts(values);
            Arc::new(Float64Array::new(values.into(), known))
        }
        Values::Text(values) => Arc::new(StringViewArray::from_iter_values(values)),
        Values::Blob(values) => Arc::new(LargeBinaryArray::from_iter_values(values)),
    };
    (Field::new(column.name, array.data_type().clone(), nullable).with_metadata(metadata), array)
}

fn parts<T: Copy + Default>(values: Maybe<T>) -> (Vec<T>, Option<NullBuffer>) {
    let (values, known) = values.into_parts();
    let known = known.contains(&false).then(|| NullBuffer::from(known));
    (values, known)
}

/// What tables and columns there are, without rows: their names, types, units and meanings.
pub(crate) fn schemas_to_python<'py>(py: Python<'py>, tables: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let described = |column: &Column| {
        let (kind, nullable) = (kind(&column.values), column.is_nullable());
        let (unit, meaning) = (column.unit(), column.meaning());
        PyResult::Ok(
            dict!(py; "name": &*column.name, "type": kind, "nullable": nullable, "unit": unit, "meaning": meaning),
        )
    };
    for table in tables {
        let columns: Vec<_> = table.columns.iter().map(described).collect::<PyResult<_>>()?;
        answer.set_item(table.name, dict!(py; "about": table.about, "columns": columns))?;
    }
    Ok(answer)
}

fn kind(values: &Values) -> &'static str {
    match values {
        Values::U32(_) | Values::MaybeU32(_) => "u32",
        Values::U64(_) | Values::MaybeU64(_) => "u64",
        Values::F64(_) | Values::MaybeF64(_) => "f64",
        Values::Text(_) => "text",
        Values::Blob(_) => "binary",
    }
}
