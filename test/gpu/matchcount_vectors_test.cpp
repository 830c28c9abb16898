// Vectors of matchcount on the device: signatures, candidates and answers are those of the CPU, to the bit.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "both_searchers.h"
#include "matchcount/signatures.h"
#include "matchcount/vector_search.h"
#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"
#include "numeric/distance.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

using matchcount::HashFamily;
using matchcount::HashForm;
using matchcount::VectorHashes;

struct Form {
    Metric metric = Metric::l2;
    bool binning = false;
    std::size_t functions = 64;
    std::size_t buckets = 67;
    std::size_t dimensions = 20;
    float width = 4;
};

std::string name_of(const Form& form)
{
    return std::to_string(static_cast<int>(form.metric)) + (form.binning ? ", binning, " : ", ") +
           std::to_string(form.functions) + " functions of " + std::to_string(form.buckets) + " values, " +
           std::to_string(form.dimensions) + " dimensions";
}

IndexShape shape_of(const Form& form)
{
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.metric = static_cast<std::uint8_t>(form.metric);
    shape.element = ElementType::float32;
    shape.dimensions = static_cast<std::uint32_t>(form.dimensions);
    return shape;
}

ParameterList options_of(const Form& form)
{
    ParameterList options;
    options.set(option_hashes, static_cast<std::int64_t>(form.functions));
    if (form.metric != Metric::cosine) options.set(matchcount::option_buckets, static_cast<std::int64_t>(form.buckets));
    if (form.binning) options.set(matchcount::option_lsh, 1);
    return options;
}

// Vectors around some centres, several of them equal.
std::vector<float> random_vectors(const Form& form, std::size_t count, std::mt19937& random)
{
    std::normal_distribution<float> normal;
    const std::size_t centres = 1 + random() % 20;
    std::vector<float> centre(centres * form.dimensions);
    for (float& value : centre) value = 2 * normal(random);
    std::vector<float> vectors(count * form.dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        float* const vector = vectors.data() + i * form.dimensions;
        if (i > 0 && random() % 8 == 0) {
            std::copy_n(vectors.data() + random() % i * form.dimensions, form.dimensions, vector);
            continue;
        }
        const float* const near = centre.data() + random() % centres * form.dimensions;
        for (std::size_t d = 0; d < form.dimensions; ++d) vector[d] = near[d] + normal(random);
        if (form.metric != Metric::cosine) continue;
        const double norm = canonical_norm(vector, form.dimensions);
        for (std::size_t d = 0; d < form.dimensions; ++d) vector[d] = static_cast<float>(vector[d] / norm);
    }
    return vectors;
}

class BothIndexes : public BothSearchers
{
public:
    BothIndexes(const Form& form, const std::vector<float>& vectors, std::mt19937& random,
                cuda::Context& context = shared_context())
        : form_(form), hashes_(matchcount::hash_form(shape_of(form), options_of(form)), form.dimensions)
    {
        rows_ = vectors.size() / form.dimensions;
        hashes_.draw(form.width, random());
        std::vector<std::uint8_t> signatures(rows_ * hashes_.signature_bytes());
        hashes_.sign(vectors, signatures.data(), pool(), nullptr);
        // An index without rows has no arrays.
        std::vector<ArrayShape> arrays;
        if (rows_ > 0) {
            arrays = {hashes_.shape(),
                      make_array_shape(matchcount::array_signatures, ArrayType::u8, rows_, hashes_.signature_bytes()),
                      make_array_shape(array_vectors, ArrayType::f32, rows_, form.dimensions)};
        }
        set(matchcount::make_vector_searcher(shape_of(form), options_of(form), arrays),
            cuda::make_vector_searcher(context, shape_of(form), options_of(form), arrays));
        if (rows_ > 0) {
            write_pieces(matchcount::array_hashes, std::as_bytes(hashes_.parameters()));
            write_pieces(matchcount::array_signatures, std::as_bytes(std::span(signatures)));
            write_pieces(array_vectors, std::as_bytes(std::span(vectors)));
        }
        finish_load();
    }

    std::size_t rows() const { return rows_; }
    const VectorHashes& hashes() const { return hashes_; }

    void expect_same(const SearchBatch& batch)
    {
        SCOPED_TRACE(name_of(form_) + ", " + std::to_string(rows_) + " rows, k " + std::to_string(batch.k) + ", " +
                     std::to_string(batch.count) + " queries, candidates " +
                     std::to_string(batch.settings.get(matchcount::parameter_candidates, 0)));
        ASSERT_NO_FATAL_FAILURE(BothSearchers::expect_same(batch));
        const auto candidates = [&](const Searcher& searcher) {
            return searcher.resolved_settings(batch).get(matchcount::parameter_candidates, 0);
        };
        EXPECT_EQ(candidates(device()), candidates(cpu()));
        EXPECT_EQ(device().result_kind(), cpu().result_kind());
    }
    void expect_same_continuations(const SearchBatch& batch)
    {
        SCOPED_TRACE(name_of(form_) + ", continuations");
        BothSearchers::expect_same_continuations(batch);
    }
    void expect_same_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs)
    {
        RungResults wanted;
        RungResults found;
        cpu().search_rungs(batch, rungs, wanted, pool());
        device().search_rungs(batch, rungs, found, pool());
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t rung = 0; rung < found.size(); ++rung)
            for (std::size_t i = 0; i < batch.count; ++i)
                ASSERT_NO_FATAL_FAILURE(expect_equal(found[rung][i], wanted[rung][i]));
    }

private:
    // Pieces end within rows.
    void write_pieces(const char* array, std::span<const std::byte> bytes)
    {
        const std::size_t piece = bytes.size() / 3 / 4 * 4 + 4;
        for (std::size_t at = 0; at < bytes.size(); at += piece)
            write(array, at, bytes.subspan(at, std::min(piece, bytes.size() - at)));
    }

    Form form_;
    VectorHashes hashes_;
    std::size_t rows_ = 0;
};

SearchBatch batch_of(const Form& form, const std::vector<float>& queries, std::uint32_t k, std::int64_t candidates)
{
    SearchBatch batch;
    batch.queries = queries;
    batch.count = queries.size() / form.dimensions;
    batch.k = k;
    batch.settings.set(matchcount::parameter_candidates, candidates);
    return batch;
}

std::vector<std::uint64_t> random_dead(std::size_t rows, unsigned one_of, std::mt19937& random)
{
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::size_t i = 0; i < rows; ++i)
        if (random() % one_of == 0) set_bit(dead, i);
    return dead;
}

void set_dead(SearchBatch& batch, const std::vector<std::uint64_t>& dead)
{
    batch.dead = dead;
    batch.dead_version = new_bitmap_version();
}

Form random_form(std::mt19937& random)
{
    constexpr Metric metrics[] = {Metric::l2, Metric::l1, Metric::l1, Metric::cosine};
    constexpr std::size_t functions[] = {8, 9, 31, 32, 33, 64, 226, 255, 256, 300, 1024};
    constexpr std::size_t buckets[] = {2, 3, 67, 254, 255};
    const std::size_t family = random() % std::size(metrics);
    Form form;
    form.metric = metrics[family];
    form.binning = family == 2;
    form.functions = functions[random() % (random() % 3 == 0 ? std::size(functions) : 7)];
    form.buckets = buckets[random() % std::size(buckets)];
    form.dimensions = 1 + random() % (random() % 6 == 0 ? 400 : 40);
    form.width = 0.5F + static_cast<float>(random() % 100) / 5;
    return form;
}

TEST(DeviceVectors, SignaturesEqualTheCpus)
{
    std::mt19937 random(5);
    cuda::Context& context = shared_context();
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    ThreadPool pool(0);
    for (int round = 0; round < 60 && !HasFailure(); ++round) {
        Form form = random_form(random);
        if (round % 10 == 0) form.dimensions = 2000;
        // Values from tiny ones to large ones.
        const float scale = std::pow(10.0F, static_cast<float>(random() % 12) - 5);
        VectorHashes hashes(matchcount::hash_form(shape_of(form), options_of(form)), form.dimensions);
        hashes.draw(form.width, random());
        std::vector<float> vectors = random_vectors(form, 1 + random() % 300, random);
        for (float& value : vectors) value = random() % 9 == 0 ? 0 : value * scale;
        const std::size_t count = vectors.size() / form.dimensions;
        std::vector<std::uint8_t> wanted(count * hashes.signature_bytes());
        hashes.sign(vectors, wanted.data(), pool, nullptr);

        cuda::DeviceArray<float> parameters(context.pool(), hashes.parameters().size(), "test", stream);
        cuda::DeviceArray<float> given(context.pool(), vectors.size(), "test", stream);
        cuda::DeviceArray<std::uint8_t> values(context.pool(), count * form.functions, "test", stream);
        cudaMemcpyAsync(parameters.data(), hashes.parameters().data(), parameters.bytes(), cudaMemcpyHostToDevice,
                        stream);
        cudaMemcpyAsync(given.data(), vectors.data(), given.bytes(), cudaMemcpyHostToDevice, stream);
        const cuda::matchcount::DeviceHashes functions{hashes.form(), static_cast<std::uint32_t>(form.dimensions),
                                                       parameters.data()};
        sign_vectors(functions, given.data(), static_cast<std::uint32_t>(count), values.data(), stream);
        std::vector<std::uint8_t> found(values.size());
        cudaMemcpyAsync(found.data(), values.data(), values.bytes(), cudaMemcpyDeviceToHost, stream);
        stream.stream().synchronize();
        const bool bits = hashes.form().family == HashFamily::signs;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint8_t* const signature = wanted.data() + i * hashes.signature_bytes();
            for (std::size_t f = 0; f < form.functions; ++f) {
                const unsigned value = bits ? signature[f / 8] >> f % 8 & 1 : signature[f];
                ASSERT_EQ(found[i * form.functions + f], value)
                    << name_of(form) << ", vector " << i << ", function " << f;
            }
        }
    }
}

TEST(DeviceVectors, RandomCasesEqualTheCpus)
{
    for (unsigned seed = 0; seed < 150 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        const Form form = random_form(random);
        const std::size_t rows = random() % (seed % 8 == 0 ? 3 : seed % 8 == 1 ? 20000 : 2000);
        const std::vector<float> vectors = random_vectors(form, rows, random);
        BothIndexes both(form, vectors, random);
        const std::vector<float> queries = random_vectors(form, 1 + random() % (seed % 4 == 0 ? 300 : 20), random);
        const std::uint32_t k = 1 + random() % (seed % 3 == 0 ? 2 * rows + 5 : 12);
        SearchBatch batch = batch_of(form, queries, k, seed % 5 == 0 ? 0 : 1 + random() % (rows + 10));
        const std::vector<std::uint64_t> dead = random_dead(rows, 1 + random() % 5, random);
        if (seed % 2 == 0) set_dead(batch, dead);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        batch.settings.set(setting_estimate, 1);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        if (seed % 5 != 0) continue;
        batch.settings = {};
        batch.count = 1;
        batch.queries = batch.queries.first(form.dimensions);
        ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(batch));
    }
}

// Batches by tiles and by parts, of one chunk and of several; and candidates that a block and that the host sorts.
TEST(DeviceVectors, LargeIndexesEqualTheCpus)
{
    std::mt19937 random(17);
    for (const Form& form : {Form{}, Form{.metric = Metric::cosine, .functions = 100, .dimensions = 24},
                             Form{.metric = Metric::l1, .binning = true, .functions = 300, .buckets = 255}}) {
        const std::vector<float> vectors = random_vectors(form, 150077, random);
        BothIndexes both(form, vectors, random);
        const std::vector<std::uint64_t> dead = random_dead(both.rows(), 3, random);
        for (const std::size_t count : {1, 7, 100}) {
            const std::vector<float> queries = random_vectors(form, count, random);
            for (const std::int64_t candidates : {50, 2612, 9000, 65536}) {
                SearchBatch batch = batch_of(form, queries, 10, candidates);
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
                set_dead(batch, dead);
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
        }
        const std::vector<float> queries = random_vectors(form, 2000, random);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(form, queries, 10, 100)));
    }
}

TEST(DeviceVectors, DimensionsFromOneToTwoThousand)
{
    std::mt19937 random(23);
    for (const std::size_t dimensions : {1, 2, 7, 8, 9, 63, 128, 1000, 2000}) {
        for (const Metric metric : {Metric::l2, Metric::l1, Metric::cosine}) {
            const Form form{.metric = metric, .functions = 40, .dimensions = dimensions};
            BothIndexes both(form, random_vectors(form, 700, random), random);
            const std::vector<float> queries = random_vectors(form, 40, random);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(form, queries, 10, 100)));
        }
    }
}

TEST(DeviceVectors, SixteenThousandDimensions)
{
    std::mt19937 random(47);
    constexpr std::size_t dimensions = 16000;
    for (const Form& form :
         {Form{.functions = 1024, .buckets = 255, .dimensions = dimensions},
          Form{.metric = Metric::cosine, .functions = 200, .dimensions = dimensions},
          Form{.metric = Metric::l1, .binning = true, .functions = 100, .dimensions = dimensions, .width = 1e4F}}) {
        BothIndexes both(form, random_vectors(form, 30, random), random);
        for (const std::size_t count : {1, 34}) {
            const std::vector<float> queries = random_vectors(form, count, random);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(form, queries, 5, 12)));
        }
    }
}

// Queries that match few rows: others are candidates in row order, and not similar.
TEST(DeviceVectors, FarQueriesEqualTheCpus)
{
    std::mt19937 random(53);
    const Form form{.functions = 9, .buckets = 255, .dimensions = 3, .width = 0.05F};
    BothIndexes both(form, random_vectors(form, 40000, random), random);
    const std::vector<std::uint64_t> dead = random_dead(both.rows(), 2, random);
    for (const std::size_t count : {1, 5, 40}) {
        std::vector<float> queries = random_vectors(form, count, random);
        for (float& value : queries) value = 1e6F + 1e3F * value;
        SearchBatch batch = batch_of(form, queries, 10, 30000);
        set_dead(batch, dead);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        batch.settings.set(setting_estimate, 1);
        batch.k = 30000;
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    }
}

// A device with 64 KB of shared memory for a block.
TEST(DeviceVectors, SmallDevicesEqualTheCpu)
{
    std::mt19937 random(67);
    cuda::Context context(0, std::uint64_t{1} << 30);
    context.limit_shared_bytes(65536);
    for (const Form& form : {Form{}, Form{.functions = 300, .buckets = 255},
                             Form{.metric = Metric::cosine, .functions = 1024, .dimensions = 24}}) {
        BothIndexes both(form, random_vectors(form, 20000, random), random, context);
        for (const std::size_t count : {1, 3, 40}) {
            const std::vector<float> queries = random_vectors(form, count, random);
            for (const std::int64_t candidates : {50, 4096, 4097, 9000})
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(form, queries, 10, candidates)));
        }
    }
}

// Threads with other numbers of candidates and dead rows each.
TEST(DeviceVectors, SearchesAtATimeEqualTheCpus)
{
    std::mt19937 random(59);
    const Form form;
    BothIndexes both(form, random_vectors(form, 20000, random), random);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([&both, &form, number] {
            std::mt19937 own(number);
            const std::vector<float> queries = random_vectors(form, 1 + 15 * number, own);
            for (int round = 0; round < 6; ++round) {
                const std::vector<std::uint64_t> dead = random_dead(both.rows(), 2 + round, own);
                SearchBatch batch = batch_of(form, queries, 1 + own() % 50, 1 + own() % 12000);
                if (round % 3 == 0) batch.settings.set(setting_estimate, 1);
                set_dead(batch, dead);
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

// With any budget a search is answered, or fails and leaves no memory taken.
TEST(DeviceVectors, ShortMemoryIsGivenBack)
{
    std::mt19937 random(61);
    const Form form;
    const std::vector<float> vectors = random_vectors(form, 50000, random);
    const std::vector<float> queries = random_vectors(form, 200, random);
    int loads = 0;
    int answers = 0;
    for (const std::uint64_t kibibytes : {64, 4000, 7800, 8192, 10000, 12000, 20000}) {
        SCOPED_TRACE(std::to_string(kibibytes) + " KiB");
        cuda::Context context(0, kibibytes << 10);
        try {
            BothIndexes both(form, vectors, random, context);
            ++loads;
            const std::vector<std::uint64_t> dead = random_dead(both.rows(), 3, random);
            for (const std::int64_t candidates : {9000, 100}) {
                SearchBatch batch = batch_of(form, queries, 10, candidates);
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
                set_dead(batch, dead);
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
            ++answers;
        } catch (const std::bad_alloc&) {
        }
        EXPECT_EQ(context.pool().used(), 0U);
    }
    EXPECT_GT(answers, 0);
    EXPECT_LT(loads, 7);
}

// All rows have one signature: the first of them are candidates.
TEST(DeviceVectors, EqualCountsComeInRowOrder)
{
    std::mt19937 random(29);
    for (const Metric metric : {Metric::l2, Metric::cosine}) {
        const Form form{.metric = metric, .functions = 32, .dimensions = 6, .width = 1e9F};
        std::vector<float> vectors = random_vectors(form, 5000, random);
        if (metric == Metric::cosine)
            for (std::size_t i = 6; i < vectors.size(); ++i) vectors[i] = vectors[i % 6];
        BothIndexes both(form, vectors, random);
        const std::vector<std::uint64_t> dead = random_dead(both.rows(), 2, random);
        for (const std::size_t count : {1, 40}) {
            const std::vector<float> queries = random_vectors(form, count, random);
            SearchBatch batch = batch_of(form, queries, 10, 300);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            set_dead(batch, dead);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        }
    }
}

TEST(DeviceVectors, FewRowsAndDeadOnes)
{
    std::mt19937 random(31);
    const Form form;
    const std::vector<float> queries = random_vectors(form, 3, random);
    for (const std::size_t rows : {0, 1, 2, 70}) {
        BothIndexes both(form, random_vectors(form, rows, random), random);
        SearchBatch batch = batch_of(form, queries, 10, 20);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        const std::vector<std::uint64_t> all = random_dead(rows, 1, random);
        set_dead(batch, all);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        batch.k = 0;
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    }
}

TEST(DeviceVectors, RungsAreSearches)
{
    std::mt19937 random(37);
    const Form form;
    BothIndexes both(form, random_vectors(form, 9000, random), random);
    const std::vector<float> queries = random_vectors(form, 5, random);
    SearchBatch batch = batch_of(form, queries, 50, 0);
    const std::vector<SearchRung> rungs = {{20, 5, 0}, {300, 10, 0}, {5000, 50, 0}};
    ASSERT_NO_FATAL_FAILURE(both.expect_same_rungs(batch, rungs));
}

TEST(DeviceVectors, WrongArraysAreRefused)
{
    std::mt19937 random(41);
    const Form form;
    BothIndexes both(form, random_vectors(form, 10, random), random);
    const std::vector<std::byte> some(64);
    EXPECT_THROW(both.device().write("others", 0, some), BadRequest);
    EXPECT_THROW(both.device().write(matchcount::array_signatures, 10 * form.functions - 63, some), BadRequest);
    EXPECT_THROW(both.device().write(array_vectors, ~std::uint64_t{0}, some), BadRequest);
    const std::vector<ArrayShape> arrays = {make_array_shape(array_vectors, ArrayType::f32, 10, form.dimensions)};
    EXPECT_THROW((void)cuda::make_vector_searcher(shared_context(), shape_of(form), options_of(form), arrays),
                 BadRequest);
}

TEST(DeviceVectors, CancelledSearchesThrow)
{
    std::mt19937 random(43);
    const Form form;
    BothIndexes both(form, random_vectors(form, 100, random), random);
    const std::vector<float> queries = random_vectors(form, 1, random);
    SearchBatch batch = batch_of(form, queries, 5, 20);
    CancelToken cancel;
    cancel.cancel();
    batch.cancel = &cancel;
    std::vector<std::vector<RowResult>> found;
    EXPECT_THROW(both.device().search(batch, found, both.pool()), Cancelled);
}

}  // namespace
}  // namespace pgwarp::test
