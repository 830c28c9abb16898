#include "matchcount/vector_mirror.h"

#include <algorithm>

#include "device/error.h"
#include "device/wait.h"
#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t staged_bytes = std::size_t{8} << 20;
constexpr std::uint8_t no_value = 0xff;  // of places without a row

void check_piece(std::uint64_t size, std::uint64_t offset, std::size_t bytes)
{
    if (offset > size || bytes > size - offset) throw BadRequest("past the end of an array");
}

}  // namespace

VectorMirror::VectorMirror(Context& context, const IndexShape& shape, const ParameterList& options,
                           std::span<const ArrayShape> arrays)
    : context_(context),
      form_(pgwarp::matchcount::hash_form(shape, options)),
      dimensions_(shape.dimensions),
      owner_(context.lease(Priority::build))
{
    const ArrayShape* vectors = find_array(arrays, array_vectors);
    if (vectors == nullptr || vectors->rows == 0) return;
    rows_ = static_cast<std::uint32_t>(vectors->rows);
    const pgwarp::matchcount::VectorHashes hashes(form_, dimensions_);
    const ArrayShape functions = hashes.shape();
    signature_bytes_ = static_cast<std::uint32_t>(hashes.signature_bytes());
    require_array(arrays, pgwarp::matchcount::array_hashes, functions.type, functions.rows, functions.width);
    require_array(arrays, pgwarp::matchcount::array_signatures, ArrayType::u8, rows_, signature_bytes_);
    require_array(arrays, array_vectors, ArrayType::f32, rows_, dimensions_);
    MemoryPool& pool = context.pool();
    parameters_ = DeviceArray<float>(pool, functions.rows * functions.width, "matchcount hashes", owner_);
    values_ = DeviceArray<std::uint8_t>(pool, form_.functions * matchcount::dense_stride(rows_),
                                        "matchcount signatures", owner_);
    vectors_ = DeviceArray<float>(pool, std::size_t{rows_} * dimensions_, "matchcount vectors", owner_);
    check(cudaMemsetAsync(values_.data(), no_value, values_.bytes(), owner_), "clearing signatures");
    owner_.stream().synchronize();
}

void VectorMirror::write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == pgwarp::matchcount::array_hashes) return copy_in(parameters_, offset, bytes);
    if (array == pgwarp::matchcount::array_signatures) return place_in(offset, bytes);
    if (array == array_vectors) return copy_in(vectors_, offset, bytes);
    throw BadRequest("unknown array of signatures");
}

void VectorMirror::copy_in(DeviceArray<float>& to, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (rows_ == 0) return;
    check_piece(to.bytes(), offset, bytes.size());
    if (bytes.empty()) return;
    const Context::Lease lease = context_.lease(Priority::build);
    send(reinterpret_cast<std::byte*>(to.data()) + offset, bytes.data(), bytes.size(), lease, "loading vectors");
    lease.stream().synchronize();
}

void VectorMirror::place_in(std::uint64_t offset, std::span<const std::byte> bytes)
{
    check_piece(std::uint64_t{rows_} * signature_bytes_, offset, bytes.size());
    if (bytes.empty()) return;
    const Context::Lease lease = context_.lease(Priority::build);
    DeviceArray<std::uint8_t> staged(context_.pool(), std::min(bytes.size(), staged_bytes), "matchcount loading",
                                     lease);
    for (std::size_t done = 0; done < bytes.size(); done += staged.size()) {
        const std::size_t some = std::min(staged.size(), bytes.size() - done);
        send(staged.data(), bytes.data() + done, some, lease, "loading signatures");
        place_signatures({staged.data(), offset + done, some, signature_bytes_}, hashes(), values_.data(),
                         matchcount::dense_stride(rows_), lease);
        lease.stream().synchronize();
    }
}

matchcount::DeviceHashes VectorMirror::hashes() const
{
    return {form_, dimensions_, parameters_.data()};
}

matchcount::DenseRows VectorMirror::signatures() const
{
    return {rows_, static_cast<std::uint32_t>(form_.functions), hashes().universe(), matchcount::dense_stride(rows_),
            values_.data()};
}

matchcount::RankedVectors VectorMirror::vectors() const
{
    return {form_.metric, dimensions_, vectors_.data()};
}

}  // namespace pgwarp::cuda
