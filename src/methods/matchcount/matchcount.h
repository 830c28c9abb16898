// The index method matchcount on the CPU: similarity search on rows that break into parts (Zhou et al., "A Generic
// Inverted Index Framework for Similarity Search on the GPU").
//
// Text is searched by edit distance, and every answer is exact: candidates by shared grams, verified, and where their
// counts prove nothing, a comparison of all rows whose lengths allow it.
//
// Sets and attributes are searched by their common parts, exactly (protocol/part_rows.h). So are sparse vectors by
// their distances (sparse_search.h).
//
// Sets of the element minhash_set are searched by the Jaccard similarity that their signatures tell (set_hashes.h).
// Arrays: those of lists, and signatures u8 [rows][functions], both in row order. A merge signs the new rows. Delta
// rows are signed and searched likewise, or compared one by one.
//
// They have operator classes and an element type of their own, because an index must remain what it was built as: an
// option of an existing index can be changed by ALTER INDEX.
//
// Vectors are searched by locality-sensitive hashes: the rows whose signatures agree with the query's on most functions
// are candidates, which are ranked by their distances. Arrays, all but the first in row order:
//   hashes f32, the parameters of the functions (vector_hashes.h); signatures u8 [rows][signature_bytes()], vectors f32
//   [rows][d].
// Effort is the number of candidates, of vectors and of such sets.
#pragma once

#include "methods/matchcount/grams.h"
#include "methods/matchcount/vector_hashes.h"
#include "methods/method.h"
#include "protocol/similarity.h"

namespace pgwarp::matchcount
{

// The option for the number of characters of a gram.
inline constexpr char option_gram[] = "gram";
// Options of vectors and of minhash_set: the number of functions (option_hashes), or the error of a match count and its
// probability (option_delta), which ask for a number. Of vectors alone: the values of a function; and under L1 the
// functions. Effective ones tell besides how many hashes values are hashed to again, and the width of the functions, in
// millionths.
inline constexpr char option_epsilon[] = "epsilon";
inline constexpr char option_buckets[] = "buckets";
inline constexpr char option_lsh[] = "lsh";
inline constexpr char option_width[] = "width_millionths";

// The number of candidates, a setting of searches by signatures.
inline constexpr char parameter_candidates[] = "candidates";

inline constexpr char array_signatures[] = "signatures";

// Returns the form of the grams of an index with these options. Throws BadRequest for one out of range.
GramForm gram_form(const ParameterList& options);
// Returns the number of hash functions that valid options give or ask for.
std::size_t function_count(const ParameterList& options);
// Returns that of an index of minhash_set. Throws BadRequest for invalid options.
std::size_t functions_of_sets(const IndexShape& shape, const ParameterList& options);
// Returns the form of the hash functions of an index of vectors. Throws BadRequest for invalid options.
HashForm hash_form(const IndexShape& shape, const ParameterList& options);

std::unique_ptr<Builder> make_text_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_text_searcher(const IndexShape& shape, const ParameterList& options,
                                             std::span<const ArrayShape> arrays);

std::unique_ptr<Builder> make_part_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_part_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays);
// The part builder serves bags and sparse vectors as well.
std::unique_ptr<Searcher> make_bag_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays);
std::unique_ptr<Searcher> make_sparse_searcher(const IndexShape& shape, std::span<const ArrayShape> arrays);

std::unique_ptr<Builder> make_set_builder(const IndexShape& shape, const ParameterList& options);
// Signs new rows.
std::unique_ptr<Builder> make_set_merge_builder(const IndexShape& shape, const ParameterList& options);
// Measures the recall of an index by its arrays `signatures` and `list_offsets`, the arrays of protocol/calibration.h
// and its sets, which are streamed last.
std::unique_ptr<Builder> make_set_calibrator(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_set_searcher(const IndexShape& shape, const ParameterList& options,
                                            std::span<const ArrayShape> arrays);

std::unique_ptr<Builder> make_vector_builder(const IndexShape& shape, const ParameterList& options);
// Signs new rows by the functions of an index, its array `hashes`.
std::unique_ptr<Builder> make_vector_merge_builder(const IndexShape& shape, const ParameterList& options);
// Measures the recall of an index by its array `hashes`, the arrays of protocol/calibration.h and its vectors, which
// are streamed.
std::unique_ptr<Builder> make_vector_calibrator(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Searcher> make_vector_searcher(const IndexShape& shape, const ParameterList& options,
                                               std::span<const ArrayShape> arrays);
// Returns the number of rows that a search by signatures ranks in an index of `rows` rows.
std::size_t candidates_of(const SearchBatch& batch, std::size_t rows);

}  // namespace pgwarp::matchcount
