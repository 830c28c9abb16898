// k-selection against std::stable_sort: every method, awkward shapes, adversarial rows.
#include "select/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "device/error.h"
#include "device/memory.h"
#include "select/sample.cuh"
#include "select/warp_queue.cuh"

namespace pgwarp::cuda
{
namespace
{

constexpr float infinity = std::numeric_limits<float>::infinity();

struct Selected {
    std::vector<float> values;
    std::vector<std::uint32_t> ids;
};

struct Matrix {
    SelectShape shape;
    std::int64_t offset = 0;  // of the first value, which misaligns the rows
    std::vector<float> values;
    std::vector<std::uint32_t> ids;  // empty: ids are columns

    explicit Matrix(const SelectShape& s, std::int64_t o = 0) : shape(s), offset(o)
    {
        values.assign(static_cast<std::size_t>(s.rows * s.stride + o),
                      -infinity);  // gaps between rows must not be read
    }
    float* row(std::int64_t i) { return values.data() + offset + i * shape.stride; }
    const float* row(std::int64_t i) const { return values.data() + offset + i * shape.stride; }
    std::uint32_t id(std::int64_t i, std::int64_t j) const
    {
        return ids.empty() ? static_cast<std::uint32_t>(j)
                           : ids[static_cast<std::size_t>(offset + i * shape.stride + j)];
    }
};

Selected reference(const Matrix& matrix)
{
    const SelectShape& s = matrix.shape;
    Selected out;
    for (std::int64_t i = 0; i < s.rows; i++) {
        std::vector<std::pair<float, std::uint32_t>> row;
        for (std::int64_t j = 0; j < s.columns; j++) {
            const float value = matrix.row(i)[j];
            if (value < infinity) row.emplace_back(value, matrix.id(i, j));
        }
        const auto by_id = [](const auto& a, const auto& b) { return a.second < b.second; };
        const auto by_value = [](const auto& a, const auto& b) { return a.first < b.first; };
        if (!matrix.ids.empty()) std::sort(row.begin(), row.end(), by_id);
        std::stable_sort(row.begin(), row.end(), by_value);
        row.resize(static_cast<std::size_t>(s.k), {infinity, padding_id});
        for (const auto& [value, id] : row) {
            out.values.push_back(value);
            out.ids.push_back(id);
        }
    }
    return out;
}

template <class T>
DeviceArray<T> upload(MemoryPool& pool, const std::vector<T>& host)
{
    DeviceArray<T> array(pool, host.size(), "test", nullptr);
    check(cudaMemcpy(array.data(), host.data(), array.bytes(), cudaMemcpyHostToDevice), "upload");
    return array;
}

template <class T>
std::vector<T> download(const DeviceArray<T>& array)
{
    std::vector<T> host(array.size());
    check(cudaMemcpy(host.data(), array.data(), array.bytes(), cudaMemcpyDeviceToHost), "download");
    return host;
}

class SelectTest : public testing::Test
{
protected:
    Selected run(const Matrix& matrix, SelectMethod method)
    {
        const SelectShape& s = matrix.shape;
        auto values = upload(pool_, matrix.values);
        auto ids = upload(pool_, matrix.ids);
        const auto results = static_cast<std::size_t>(s.rows * s.k);
        auto selected_values = upload(pool_, std::vector<float>(results, NAN));
        auto selected_ids = upload(pool_, std::vector<std::uint32_t>(results, 7));
        DeviceArray<char> workspace(pool_, select_workspace_bytes(s, method), "test", nullptr);
        if (workspace.size() > 0) check(cudaMemset(workspace.data(), 0xa5, workspace.size()), "poison");
        if (matrix.ids.empty())
            select_smallest(values.data() + matrix.offset, s, selected_values.data(), selected_ids.data(),
                            workspace.data(), nullptr, method);
        else
            select_smallest_with_ids(values.data() + matrix.offset, ids.data() + matrix.offset, s,
                                     selected_values.data(), selected_ids.data(), workspace.data(), nullptr, method);
        check(cudaDeviceSynchronize(), "selecting");
        return {download(selected_values), download(selected_ids)};
    }

    void expect_right(const Matrix& matrix, const std::string& what, std::initializer_list<SelectMethod> methods)
    {
        const Selected expected = reference(matrix);
        for (const SelectMethod method : methods) {
            const SelectShape& s = matrix.shape;
            const Selected found = run(matrix, method);
            for (std::size_t i = 0; i < expected.values.size(); i++) {
                if (found.values[i] == expected.values[i] && found.ids[i] == expected.ids[i]) continue;
                FAIL() << what << ": rows " << s.rows << " columns " << s.columns << " stride " << s.stride << " k "
                       << s.k << " offset " << matrix.offset << " method " << static_cast<int>(method) << " ids "
                       << !matrix.ids.empty() << ": row " << i / s.k << " rank " << i % s.k << ": " << found.values[i]
                       << " " << found.ids[i] << ", not " << expected.values[i] << " " << expected.ids[i];
            }
        }
    }

    MemoryPool pool_{0, 0};
    std::mt19937 random_{20};
};

constexpr std::initializer_list<SelectMethod> every_method = {SelectMethod::automatic, SelectMethod::warp,
                                                              SelectMethod::block, SelectMethod::grid};

const std::vector<std::string> fillings = {"normal", "equal",  "few",   "ascending", "descending",
                                           "holes",  "sparse", "zeros", "huge"};

void fill(Matrix& matrix, const std::string& how, std::mt19937& random)
{
    std::normal_distribution<float> normal;
    const std::int64_t n = matrix.shape.columns;
    for (std::int64_t i = 0; i < matrix.shape.rows; i++) {
        float* row = matrix.row(i);
        for (std::int64_t j = 0; j < n; j++) {
            const unsigned draw = random();
            if (how == "normal") row[j] = normal(random);
            if (how == "equal") row[j] = -3.5f;
            if (how == "few") row[j] = static_cast<float>(draw % 5);
            if (how == "ascending") row[j] = static_cast<float>(j / 3);
            if (how == "descending") row[j] = static_cast<float>(-j / 3);
            if (how == "holes") row[j] = draw % 4 == 0 ? NAN : draw % 4 == 1 ? infinity : normal(random);
            if (how == "sparse") row[j] = draw % 50 == 0 ? normal(random) : draw % 2 == 0 ? -NAN : infinity;
            if (how == "zeros") row[j] = draw % 3 == 0 ? -0.0f : draw % 3 == 1 ? 0.0f : 1e-42f;
            if (how == "huge")
                row[j] = draw % 4 == 0   ? std::numeric_limits<float>::max()
                         : draw % 4 == 1 ? -infinity
                                         : std::ldexp(normal(random), static_cast<int>(draw >> 8) % 127);
        }
    }
}

void scatter_ids(Matrix& matrix, std::mt19937& random)
{
    matrix.ids.resize(matrix.values.size());
    std::iota(matrix.ids.begin(), matrix.ids.end(), 0u);
    for (auto& id : matrix.ids) id = id * 2654435761u;  // distinct and unordered
    if (random() % 4 == 0)
        for (auto& id : matrix.ids) id %= 3;  // ids repeat
}

TEST_F(SelectTest, AwkwardShapes)
{
    for (const std::int64_t columns : {0, 1, 3, 31, 33, 127, 1000, 4095, 4097, 8200, 10000})
        for (const std::int64_t k : {1, 2, 32, 33, 100, 256, 257, 1000, 1024, 1025, 4096, 5000, 9000}) {
            if (k > 4 * columns + 100) continue;
            const std::int64_t gap = random_() % 9;
            Matrix matrix({1 + static_cast<std::int64_t>(random_() % 4), columns, columns + gap, k}, random_() % 5);
            const std::string& how = fillings[random_() % fillings.size()];
            fill(matrix, how, random_);
            if (random_() % 3 == 0) scatter_ids(matrix, random_);
            ASSERT_NO_FATAL_FAILURE(expect_right(matrix, how, every_method));
        }
}

TEST_F(SelectTest, EveryFilling)
{
    for (const std::string& how : fillings)
        for (const std::int64_t columns : {700, 5000, 40000, 150001})
            for (const std::int64_t k : {1, 10, 100, 1000, 1500, 6000, 20000}) {
                Matrix matrix({3, columns, columns + 1, k});
                fill(matrix, how, random_);
                if ((columns + k) % 3 == 0) scatter_ids(matrix, random_);
                ASSERT_NO_FATAL_FAILURE(expect_right(matrix, how, every_method));
            }
}

TEST_F(SelectTest, LongRows)
{
    for (const std::string how : {"normal", "descending", "few", "equal", "holes"})
        for (const std::int64_t k : {10, 1000, 4096, 65536, 70001}) {
            Matrix matrix({2, 1000003, 1000003, k});
            fill(matrix, how, random_);
            ASSERT_NO_FATAL_FAILURE(expect_right(matrix, how, {SelectMethod::automatic, SelectMethod::block}));
        }
}

TEST_F(SelectTest, ManyRows)
{
    for (const std::int64_t columns : {8, 200, 3000})
        for (const std::int64_t k : {1, 20, 128, 200, 300}) {
            Matrix matrix({3001, columns, columns, k});
            fill(matrix, columns == 200 ? "few" : "normal", random_);
            ASSERT_NO_FATAL_FAILURE(expect_right(matrix, "many rows", every_method));
        }
}

// Rows that mislead the sample: the sampled values are far below, or far above, all others.
TEST_F(SelectTest, MisleadingSamples)
{
    for (const std::uint32_t parts : {256u, 512u, 1024u, 2048u})
        for (const float lie : {-1000.0f, 1000.0f})
            for (const std::int64_t k : {5, 100, 1000, 3000, 9000}) {
                const std::int64_t columns = 160000;
                Matrix matrix({3, columns, columns, k});
                fill(matrix, lie < 0 ? "descending" : "normal", random_);
                for (std::uint32_t part = 0; part < parts; part++) {
                    float* sector = matrix.row(1) + 8 * sampled_sector(1, part, parts, columns / 8);
                    for (int j = 0; j < 8; j++) sector[j] += lie * static_cast<float>(columns);
                }
                ASSERT_NO_FATAL_FAILURE(expect_right(
                    matrix, "misleading", {SelectMethod::automatic, SelectMethod::block, SelectMethod::grid}));
                scatter_ids(matrix, random_);
                ASSERT_NO_FATAL_FAILURE(expect_right(matrix, "misleading", {SelectMethod::block, SelectMethod::grid}));
            }
}

// The sampled values are ties of small ids, so that fewer than k keys reach the threshold. Ties of larger ids stand
// beside smaller values, which pass.
TEST_F(SelectTest, MisleadingTies)
{
    constexpr std::int64_t columns = 16384;
    std::vector<bool> sampled(columns);
    for (std::uint32_t part = 0; part < 256; part++)
        for (int j = 0; j < 8; j++) sampled[8 * sampled_sector(0, part, 256, columns / 8) + j] = true;
    Matrix matrix({1, columns, columns, 1000});
    matrix.ids.resize(columns);
    std::uint32_t small_id = 0;
    std::uint32_t large_id = columns;
    for (std::int64_t j = 0; j < columns; j++) {
        matrix.row(0)[j] = 1;
        matrix.ids[j] = sampled[j] ? small_id++ : --large_id;
    }
    for (std::int64_t j = 0; j + 160 <= columns; j += 160) {
        std::int64_t at = j;
        while (sampled[at]) at++;
        matrix.row(0)[at] = 0;
    }
    ASSERT_NO_FATAL_FAILURE(expect_right(matrix, "misleading ties", every_method));
}

// The same bits in every run.
TEST_F(SelectTest, Deterministic)
{
    Matrix matrix({40, 60000, 60000, 2000});
    fill(matrix, "few", random_);
    const Selected first = run(matrix, SelectMethod::grid);
    for (int i = 0; i < 5; i++) EXPECT_EQ(run(matrix, SelectMethod::grid).ids, first.ids);
}

TEST_F(SelectTest, RefusesShapes)
{
    EXPECT_THROW(select_workspace_bytes({1, 10, 9, 1}), std::invalid_argument);
    EXPECT_THROW(select_workspace_bytes({1, 10, 10, 0}), std::invalid_argument);
    EXPECT_THROW(select_workspace_bytes({1, (std::int64_t{1} << 31) + 1, std::int64_t{1} << 32, 1}),
                 std::invalid_argument);
    EXPECT_EQ(select_workspace_bytes({0, 10, 10, 1}), 0u);
}

// Two warps select from one half of the row each; then the first merges the queue of the second.
template <int capacity>
__global__ void queue_kernel(const float* values, unsigned count, int k, float* selected, std::uint32_t* ids)
{
    __shared__ typename WarpQueue<capacity>::Shared shared[2];
    __shared__ SelectKey handed[capacity];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    WarpQueue<capacity> queue(shared[warp], k);
    for (unsigned first = 32 * warp; first < count; first += 64)
        queue.push(first + lane < count ? values[first + lane] : INFINITY, first + lane);
    if (warp == 1) queue.write_keys(handed);
    __syncthreads();
    if (warp == 1) return;
    for (int first = 0; first < k; first += 32)
        queue.push_key(first + static_cast<int>(lane) < k ? handed[first + lane] : padding_key);
    queue.write(selected, ids);
}

TEST_F(SelectTest, WarpQueue)
{
    for (const std::string& how : fillings)
        for (const std::int64_t columns : {5, 100, 2000})
            for (const std::int64_t k : {1, 31, 32, 50, 128, 256}) {
                Matrix matrix({1, columns, columns, k});
                fill(matrix, how, random_);
                const Selected expected = reference(matrix);
                auto values = upload(pool_, matrix.values);
                DeviceArray<float> selected(pool_, static_cast<std::size_t>(k), "test", nullptr);
                DeviceArray<std::uint32_t> ids(pool_, static_cast<std::size_t>(k), "test", nullptr);
                const auto kernel = k <= 32 ? queue_kernel<32> : k <= 64 ? queue_kernel<64> : queue_kernel<256>;
                kernel<<<1, 64>>>(values.data(), static_cast<unsigned>(columns), static_cast<int>(k), selected.data(),
                                  ids.data());
                check_launch("queue_kernel");
                ASSERT_EQ(download(selected), expected.values) << how << " " << columns << " " << k;
                ASSERT_EQ(download(ids), expected.ids) << how << " " << columns << " " << k;
            }
}

}  // namespace
}  // namespace pgwarp::cuda
