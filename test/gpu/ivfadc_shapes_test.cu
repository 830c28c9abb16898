// ivfadc on the device over rows of every shape: ties, copies, huge and tiny values, few rows; and its layout.
#include <gtest/gtest.h>

#include <set>

#include "device/error.h"
#include "ivfadc/layout.h"
#include "ivfadc/mirror_kernels.h"
#include "ivfadc_fixture.h"
#include "methods/rows/byte_lists.h"
#include "rows/forms.h"

namespace pgwarp::test
{
namespace
{

// Rows of one value come in the order of their numbers, page by page, until every row was returned once.
TEST(DeviceIvfadcShapes, ContinuesThroughTies)
{
    ThreadPool pool(0);
    const std::size_t dimensions = 6;
    std::vector<float> rows = random_rows(5000, dimensions, 3);
    for (std::size_t i = 600 * dimensions; i < 4000 * dimensions; ++i) rows[i] = rows[i % dimensions];
    const Both index(Metric::inner_product, dimensions, rows, make_list({{"codes", 1}, {"refine", 2}, {"lists", 8}}),
                     pool);
    SearchBatch batch;
    const std::vector<float> query = random_rows(1, dimensions, 4);
    batch.queries = query;
    batch.count = 1;
    batch.k = 700;
    double distance = -HUGE_VAL;
    std::uint32_t row = 0;
    std::size_t offered = 0;
    for (int page = 0; page < 9; ++page) {
        std::vector<RowResult> expected;
        std::vector<RowResult> found;
        index.searcher->search_exact(batch, distance, row, expected, pool);
        index.device->search_exact(batch, distance, row, found, pool);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_EQ(found[i].row, expected[i].row);
            ASSERT_EQ(found[i].distance, expected[i].distance);
        }
        offered += found.size();
        if (found.empty()) break;
        distance = found.back().distance;
        row = found.back().row;
    }
    EXPECT_EQ(offered, 5000U);
}

// Ties everywhere: all rows pass the limits, and the search is repeated with dense scores.
TEST(DeviceIvfadcShapes, ManyDuplicates)
{
    ThreadPool pool(0);
    const std::size_t dimensions = 16;
    std::vector<float> rows = random_rows(20000, dimensions, 3);
    for (std::size_t i = 0; i < rows.size() / 2; ++i) rows[i] = rows[i % dimensions];
    std::vector<float> queries;
    for (int i = 0; i < 400; ++i) queries.insert(queries.end(), rows.begin(), rows.begin() + dimensions);
    for (const std::int64_t codes : {1, 2}) {
        const Both index(Metric::l2, dimensions, rows, make_list({{"codes", codes}, {"lists", 32}}), pool);
        const auto found = index.ask(*index.device, queries, 10, 16, pool);
        const auto expected = index.ask(*index.device, {queries.begin(), queries.begin() + dimensions}, 10, 16, pool);
        for (const auto& result : found) {
            ASSERT_EQ(result.size(), 10U);
            for (const RowResult& one : result) ASSERT_EQ(one.distance, expected[0][0].distance);
        }
    }
}

// More items than one launch scans: many queries probe all of many lists, and most of the neighbours are in far lists.
TEST(DeviceIvfadcShapes, ManyItems)
{
    ThreadPool pool(0);
    constexpr std::size_t dimensions = 16;
    constexpr std::size_t count = 16384;
    // Few enough for dense scores.
    constexpr std::size_t together = 200;
    constexpr std::int64_t lists = 1100;
    const std::vector<float> rows = random_rows(36000, dimensions, 12);
    std::vector<float> queries = random_rows(count, dimensions, 12);
    for (float& value : queries) value = value * 0.98F + 0.01F;
    const Both index(Metric::l2, dimensions, rows, make_list({{"codes", 1}, {"refine", 2}, {"lists", lists}}), pool);
    const auto found = index.ask(*index.device, queries, 5, lists, pool);
    for (std::size_t first = 0; first < count; first += together) {
        const auto begin = queries.begin() + static_cast<std::ptrdiff_t>(first * dimensions);
        const std::size_t here = std::min(together, count - first);
        const std::vector<float> some(begin, begin + static_cast<std::ptrdiff_t>(here * dimensions));
        const auto expected = index.ask(*index.device, some, 5, lists, pool);
        for (std::size_t q = 0; q < here; ++q) {
            ASSERT_EQ(found[first + q].size(), 5U);
            for (std::size_t i = 0; i < 5; ++i) {
                ASSERT_EQ(found[first + q][i].row, expected[q][i].row) << first + q;
                ASSERT_EQ(found[first + q][i].distance, expected[q][i].distance) << first + q;
            }
        }
    }
}

TEST(DeviceIvfadcShapes, HugeAndTinyNorms)
{
    ThreadPool pool(0);
    const std::size_t dimensions = 20;
    for (const float scale : {1e-18F, 1e-6F, 1e6F, 1e15F}) {
        std::vector<float> rows = random_rows(5000, dimensions, 4, scale);
        std::vector<float> queries = random_rows(40, dimensions, 5, scale);
        for (const std::int64_t codes : {1, 2}) {
            const Both index(Metric::l2, dimensions, rows, make_list({{"codes", codes}, {"lists", 16}}), pool);
            const auto expected = index.ask(*index.searcher, queries, 10, 16, pool);
            const auto found = index.ask(*index.device, queries, 10, 16, pool);
            const Agreement agreement = compare(expected, found, 0);
            EXPECT_GE(agreement.share, 0.995) << scale << " " << codes;
            EXPECT_EQ(agreement.unequal, 0U) << scale << " " << codes;
            // A query far out of the rows' range still gets an answer.
            std::vector<float> far(dimensions, 3e38F);
            EXPECT_EQ(index.ask(*index.device, far, 10, 2, pool)[0].size(), 10U) << scale << " " << codes;
        }
    }
}

// Bytes have a scale for each row, so distant rows do not reduce the precision of the others.
TEST(DeviceIvfadcShapes, BytesBesideHugeRows)
{
    ThreadPool pool(0);
    const std::size_t dimensions = 32;
    std::vector<float> rows = random_rows(6000, dimensions, 8);
    for (std::size_t i = 0; i < 3 * dimensions; ++i) rows[100 * dimensions + i] *= 1e6F;
    const std::vector<float> queries(rows.begin() + 500 * dimensions, rows.begin() + 800 * dimensions);
    for (const std::int64_t refine : {0, 2}) {
        const Both index(Metric::l2, dimensions, rows, make_list({{"codes", 2}, {"refine", refine}}), pool);
        for (const std::size_t count : {1, 300}) {
            const std::vector<float> some(queries.begin(),
                                          queries.begin() + static_cast<std::ptrdiff_t>(count * dimensions));
            const auto expected = index.ask(*index.searcher, some, 10, 65536, pool);
            const auto found = index.ask(*index.device, some, 10, 65536, pool);
            const Agreement agreement = compare(expected, found, 0);
            EXPECT_GE(agreement.share, count == 1 ? 0.8 : 0.995) << refine;
            EXPECT_EQ(agreement.unequal, 0U) << refine;
        }
    }
}

TEST(DeviceIvfadcShapes, BytesOfWideRows)
{
    ThreadPool pool(0);
    const std::size_t dimensions = 1536;
    const std::vector<float> rows = random_rows(1500, dimensions, 9);
    const std::vector<float> queries = random_rows(300, dimensions, 9);
    const Both index(Metric::l2, dimensions, rows, make_list({{"codes", 2}, {"refine", 1}, {"lists", 12}}), pool);
    for (const std::size_t count : {2, 300}) {
        const std::vector<float> some(queries.begin(),
                                      queries.begin() + static_cast<std::ptrdiff_t>(count * dimensions));
        const Agreement agreement =
            compare(index.ask(*index.searcher, some, 10, 6, pool), index.ask(*index.device, some, 10, 6, pool), 0);
        EXPECT_GE(agreement.share, count == 2 ? 0.9 : 0.995);
        EXPECT_EQ(agreement.unequal, 0U);
    }
}

// The device's builder makes the bytes of the CPU's, given the same lists.
TEST(DeviceIvfadcShapes, EncodesTheBytesOfTheCpu)
{
    for (const std::size_t dimensions : {1, 3, 33, 128, 1536}) {
        const std::size_t count = 300;
        std::vector<float> rows = random_rows(count, dimensions, 10, dimensions == 33 ? 1e20F : 1);
        std::fill_n(rows.begin(), dimensions, 0.0F);
        std::vector<float> centroids = random_rows(2, dimensions, 11, 0.3F);
        std::fill_n(centroids.begin(), dimensions, 0.0F);
        std::vector<std::uint32_t> lists(count);
        for (std::size_t i = 0; i < count; ++i) lists[i] = static_cast<std::uint32_t>(i % 2);
        const auto lease = shared_context().lease(cuda::Priority::build);
        const auto on_device = [&]<class T>(const std::vector<T>& values) {
            cuda::DeviceArray<T> copy(shared_context().pool(), values.size(), "test", lease);
            cuda::check(cudaMemcpyAsync(copy.data(), values.data(), copy.bytes(), cudaMemcpyHostToDevice, lease),
                        "test");
            return copy;
        };
        std::vector<std::uint8_t> codes(rows.size());
        std::vector<float> scales(count);
        const auto device_rows = on_device(rows);
        const auto device_lists = on_device(lists);
        const auto device_centroids = on_device(centroids);
        const auto device_codes = on_device(codes);
        const auto device_scales = on_device(scales);
        cuda::rows::encode_byte_rows(device_rows.data(), count, static_cast<std::uint32_t>(dimensions),
                                     device_lists.data(), device_centroids.data(),
                                     const_cast<std::uint8_t*>(device_codes.data()),
                                     const_cast<float*>(device_scales.data()), lease);
        cuda::check(cudaMemcpyAsync(codes.data(), device_codes.data(), codes.size(), cudaMemcpyDeviceToHost, lease),
                    "test");
        cuda::check(cudaMemcpyAsync(scales.data(), device_scales.data(), count * 4, cudaMemcpyDeviceToHost, lease),
                    "test");
        lease.stream().synchronize();
        std::vector<std::uint8_t> expected(dimensions);
        for (std::size_t i = 0; i < count; ++i) {
            const float scale = encode_bytes(rows.data() + i * dimensions, centroids.data() + lists[i] * dimensions,
                                             dimensions, expected.data());
            ASSERT_EQ(scale, scales[i]) << dimensions << " " << i;
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                                   codes.begin() + static_cast<std::ptrdiff_t>(i * dimensions)))
                << dimensions << " " << i;
        }
    }
}

// More rows than one launch takes.
TEST(DeviceIvfadcShapes, TermsAndBytesOfManyRows)
{
    constexpr std::size_t count = (std::size_t{1} << 20) + 601;
    constexpr std::size_t there = count - 100;
    constexpr std::uint32_t dimensions = 8;
    const std::uint32_t stride = cuda::rows::half_stride(dimensions);
    const auto lease = shared_context().lease(cuda::Priority::build);
    const auto array = [&]<class T>(std::size_t size, T) {
        return cuda::DeviceArray<T>(shared_context().pool(), size, "test", lease);
    };
    const auto copy = [&](void* to, const void* from, std::size_t bytes) {
        cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, lease), "test");
        lease.stream().synchronize();
    };
    std::vector<float> rows(count * dimensions, 0.0F);
    for (std::size_t i = 0; i < count; ++i) rows[i * dimensions] = static_cast<float>(i % 1000);
    const std::vector<float> mean(dimensions, 0.0F);
    const std::vector<std::uint32_t> lists(count, 0);
    auto device_rows = array(rows.size(), float{});
    auto device_mean = array(mean.size(), float{});
    auto device_lists = array(count, std::uint32_t{});
    auto halves = array(count * stride, __half{});
    auto device_terms = array(count, float{});
    auto device_codes = array(rows.size(), std::uint8_t{});
    copy(device_rows.data(), rows.data(), device_rows.bytes());
    copy(device_mean.data(), mean.data(), device_mean.bytes());
    copy(device_lists.data(), lists.data(), device_lists.bytes());
    cuda::rows::encode_halves(device_rows.data(), nullptr, count, device_mean.data(), 1, dimensions, dimensions,
                              halves.data(), lease);
    std::vector<float> terms(count);
    for (const std::size_t known : {count, there, std::size_t{600}}) {
        cuda::rows::half_terms(halves.data(), nullptr, known, count, dimensions, true, device_terms.data(), lease);
        copy(terms.data(), device_terms.data(), device_terms.bytes());
        for (std::size_t i = 0; i < count; ++i) {
            const float value = rows[i * dimensions];
            ASSERT_EQ(terms[i], i < known ? value * value : INFINITY) << i;
        }
    }
    cuda::rows::encode_byte_rows(device_rows.data(), count, dimensions, device_lists.data(), device_mean.data(),
                                 device_codes.data(), device_terms.data(), lease);
    std::vector<std::uint8_t> codes(rows.size());
    copy(codes.data(), device_codes.data(), device_codes.bytes());
    copy(terms.data(), device_terms.data(), device_terms.bytes());
    std::vector<std::uint8_t> expected(dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = rows.data() + i * dimensions;
        ASSERT_EQ(terms[i], encode_bytes(row, mean.data(), dimensions, expected.data())) << i;
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), codes.data() + i * dimensions)) << i;
    }
}

// More dimensions than a rotation is learnt for.
TEST(DeviceIvfadcShapes, RandomRotation)
{
    ThreadPool pool(0);
    for (const std::size_t dimensions : {2100, 4096}) {
        const std::vector<float> rows = random_rows(1500, dimensions, 8);
        const std::vector<float> queries = random_rows(200, dimensions, 8);
        const auto options = make_list({{"refine", 0}, {"lists", 12}, {"subquantizers", 128}, {"opq", 1}});
        const Both index(Metric::l2, dimensions, rows, options, pool);
        for (const std::size_t batch : {1, 200}) {
            const std::vector<float> some(queries.begin(),
                                          queries.begin() + static_cast<std::ptrdiff_t>(batch * dimensions));
            const auto expected = index.ask(*index.searcher, some, 10, 12, pool);
            const auto found = index.ask(*index.device, some, 10, 12, pool);
            const Agreement agreement = compare(expected, found, 2e-4);
            EXPECT_TRUE(agreement.ordered) << dimensions;
            EXPECT_EQ(agreement.unequal, 0U) << dimensions;
            if (batch > 1) EXPECT_GE(agreement.share, 0.995) << dimensions;
        }
    }
}

// Bounds by bins of a range of scores: one distant list, almost equal scores, and more lists than few_queries.h takes.
TEST(DeviceIvfadcShapes, UnevenScores)
{
    ThreadPool pool(0);
    const std::size_t dimensions = 24;
    std::vector<float> rows = random_rows(30000, dimensions, 8);
    for (std::size_t i = 0; i < 3000 * dimensions; ++i) rows[i] *= 1e9F;
    for (std::size_t i = 6000 * dimensions; i < 12000 * dimensions; ++i) rows[i] = 0.5F + 1e-4F * rows[i];
    std::vector<float> queries = random_rows(24, dimensions, 9);
    for (std::size_t i = 0; i < 12 * dimensions; ++i) queries[i] = 0.5F;
    for (const std::int64_t lists : {16, 3000}) {
        const Both index(Metric::l2, dimensions, rows, make_list({{"codes", 1}, {"refine", 2}, {"lists", lists}}),
                         pool);
        for (const std::size_t batch : {1, 12, 24}) {
            const std::vector<float> some(queries.end() - static_cast<std::ptrdiff_t>(batch * dimensions),
                                          queries.end());
            for (const std::uint32_t k : {10U, 200U}) {
                const auto expected = index.ask(*index.searcher, some, k, lists, pool);
                const auto found = index.ask(*index.device, some, k, lists, pool);
                const Agreement agreement = compare(expected, found, 0);
                EXPECT_TRUE(agreement.ordered) << lists << " " << batch << " " << k;
                EXPECT_EQ(agreement.unequal, 0U) << lists << " " << batch << " " << k;
                for (const auto& result : found) ASSERT_EQ(result.size(), k);
            }
        }
    }
}

TEST(DeviceIvfadcShapes, FewRows)
{
    ThreadPool pool(1);
    for (const std::size_t count : {0, 1, 2, 33}) {
        const std::vector<float> rows = random_rows(count, 8, 6);
        const std::vector<float> queries = random_rows(300, 8, 7);
        const Both index(Metric::l2, 8, rows, make_list({{"codes", 1}}), pool);
        const auto found = index.ask(*index.device, queries, 10, 0, pool);
        for (const auto& result : found) ASSERT_EQ(result.size(), std::min<std::size_t>(count, 10));
    }
}

TEST(IvfadcLayout, PermutesBytesWithinPieces)
{
    using cuda::rows::byte_place;
    std::set<std::uint32_t> places;
    for (std::uint32_t d = 0; d < 64; ++d) {
        EXPECT_EQ(byte_place(d) / 16, d / 16);
        places.insert(byte_place(d));
    }
    EXPECT_EQ(places.size(), 64U);
    EXPECT_EQ(byte_place(17), 17U);
    EXPECT_EQ(byte_place(8), 2U);
    EXPECT_EQ(byte_place(15), 15U);
    EXPECT_EQ(byte_place(2), 4U);
    EXPECT_EQ(cuda::rows::byte_stride(1), 16U);
    EXPECT_EQ(cuda::rows::byte_stride(128), 128U);
}

TEST(IvfadcLayout, PadsListsToGroups)
{
    const std::vector<std::uint32_t> lists{2, 0, 2, 2, 0};
    const auto layout = cuda::ivfadc::ListLayout::arrange(lists, 4);
    EXPECT_EQ(layout.begin, (std::vector<std::uint32_t>{0, 32, 32, 64}));
    EXPECT_EQ(layout.length, (std::vector<std::uint32_t>{2, 0, 3, 0}));
    EXPECT_EQ(layout.position_of, (std::vector<std::uint32_t>{32, 0, 33, 34, 1}));
    EXPECT_EQ(layout.row_at[33], 2U);
    EXPECT_EQ(layout.row_at[35], cuda::rows::no_row);
    EXPECT_EQ(layout.most_slots, (std::vector<std::uint64_t>{0, 32, 64, 64, 64}));
    EXPECT_THROW(cuda::ivfadc::ListLayout::arrange(lists, 2), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test
