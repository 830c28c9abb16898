// k-means as a build: rows go in, the array "clusters" f32 [clusters][dimensions] comes out. Nothing is searched.
//
// Options and limits: src/protocol/clustering.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "methods/method.h"
#include "numeric/kmeans.h"
#include "protocol/clustering.h"

namespace pgwarp
{

// Returns the training that the options ask for; throws BadRequest for invalid ones.
KMeansOptions clustering_options(const ParameterList& options);

// Trains on rows [count][dimensions] and returns the centres. Throws std::bad_alloc to leave the training to the CPU.
using TrainClusters = std::function<std::vector<float>(std::span<const float> rows, std::size_t dimensions,
                                                       const KMeansOptions& training, ThreadPool& pool)>;

std::unique_ptr<Builder> make_clustering_builder(const IndexShape& shape, const ParameterList& options);
std::unique_ptr<Builder> make_clustering_builder(const IndexShape& shape, const ParameterList& options,
                                                 TrainClusters train);

// Throws BadRequest: there is nothing to search.
std::unique_ptr<Searcher> make_clustering_searcher(const IndexShape& shape, const ParameterList& options,
                                                   std::span<const ArrayShape> arrays);

const MethodFactory& clustering_factory();

}  // namespace pgwarp
