//! Tables as Arrow. Whoever reads them by the PyCapsule interface, such as polars, takes the memory as it is.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{
    Array, ArrayRef, Float64Array, LargeBinaryArray, RecordBatch, StringViewArray, StructArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
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
    fn schema(&self) -> PyResult<FFI_ArrowSchema> {
        FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(refused)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("a table has no form in Arrow: {error}"))
}

/// A dictionary of tables. The values move; only texts and files are copied.
pub(crate) fn tables_to_python(py: Python<'_>, tables: Vec<Table>) -> PyResult<Bound<'_, PyDict>> {
    let answer = PyDict::new(py);
    for table in tables {
        let name = table.name;
        let batch = py.detach(|| record_batch(table)).map_err(refused)?;
        answer.set_item(name, ArrowTable(batch))?;
    }
    Ok(answer)
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
    for table in tables {
        let columns = PyList::empty(py);
        for column in &table.columns {
            let entry = PyDict::new(py);
            entry.set_item("name", column.name)?;
            entry.set_item("type", kind(&column.values))?;
            entry.set_item("nullable", column.is_nullable())?;
            entry.set_item("unit", column.unit())?;
            entry.set_item("meaning", column.meaning())?;
            columns.append(entry)?;
        }
        let entry = PyDict::new(py);
        entry.set_item("about", table.about)?;
        entry.set_item("columns", columns)?;
        answer.set_item(table.name, entry)?;
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
