#include "hdf5_file.h"

#include <hdf5.h>

#include <stdexcept>

namespace pgwarp::bench
{

namespace
{

// An HDF5 handle that closes itself.
class Handle
{
public:
    Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close)
    {
        if (id < 0) throw std::runtime_error("HDF5: cannot open " + what);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { close_(id_); }
    operator hid_t() const { return id_; }

private:
    hid_t id_;
    herr_t (*close_)(hid_t);
};

// Read the first rows of a two-dimensional dataset, converted to `type`.
template <typename T>
Matrix<T> read_dataset(hid_t file, const char* name, hid_t type, std::size_t limit)
{
    const Handle dataset(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose, name);
    const Handle space(H5Dget_space(dataset), H5Sclose, name);
    hsize_t sizes[2];
    if (H5Sget_simple_extent_ndims(space) != 2) throw std::runtime_error(std::string("HDF5: not a matrix: ") + name);
    H5Sget_simple_extent_dims(space, sizes, nullptr);
    if (limit != 0 && limit < sizes[0]) sizes[0] = limit;
    const hsize_t origin[2] = {0, 0};
    H5Sselect_hyperslab(space, H5S_SELECT_SET, origin, nullptr, sizes, nullptr);
    const Handle memory(H5Screate_simple(2, sizes, nullptr), H5Sclose, name);
    Matrix<T> matrix{sizes[0], sizes[1], std::vector<T>(sizes[0] * sizes[1])};
    if (H5Dread(dataset, type, memory, space, H5P_DEFAULT, matrix.values.data()) < 0) {
        throw std::runtime_error(std::string("HDF5: cannot read ") + name);
    }
    return matrix;
}

}  // namespace

AnnFile read_ann_file(const std::string& path, std::size_t rows, std::size_t queries)
{
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, path);
    AnnFile out;
    out.base = read_dataset<float>(file, "train", H5T_NATIVE_FLOAT, rows);
    out.queries = read_dataset<float>(file, "test", H5T_NATIVE_FLOAT, queries);
    if (H5Lexists(file, "neighbors", H5P_DEFAULT) > 0) {
        out.neighbours = read_dataset<std::int32_t>(file, "neighbors", H5T_NATIVE_INT32, queries);
    }
    return out;
}

}  // namespace pgwarp::bench
