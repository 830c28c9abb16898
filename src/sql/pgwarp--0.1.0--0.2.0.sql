\echo Use "ALTER EXTENSION pgwarp UPDATE TO '0.2.0'" to load this file. \quit

-- a schema that has types of the new names is refused with a hint

CREATE FUNCTION pgwarp_refuse_taken_names() RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;

SELECT pgwarp_refuse_taken_names();

DROP FUNCTION pgwarp_refuse_taken_names();

-- functions under C names that no other library has

CREATE OR REPLACE FUNCTION vector_in(cstring, oid, integer) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_out(vector) RETURNS cstring
	AS 'MODULE_PATHNAME', 'pgwarp_vector_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_typmod_in(cstring[]) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_vector_typmod_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_recv(internal, oid, integer) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_send(vector) RETURNS bytea
	AS 'MODULE_PATHNAME', 'pgwarp_vector_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_distance(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION inner_product(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION cosine_distance(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l1_distance(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_dims(vector) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_vector_dims' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_norm(vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_vector_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_normalize(vector) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION binary_quantize(vector) RETURNS bit
	AS 'MODULE_PATHNAME', 'pgwarp_binary_quantize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION subvector(vector, int, int) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_subvector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_add(vector, vector) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_add' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_sub(vector, vector) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_sub' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_mul(vector, vector) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_mul' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_concat(vector, vector) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_lt(vector, vector) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_vector_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_le(vector, vector) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_vector_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_eq(vector, vector) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_vector_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_ne(vector, vector) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_vector_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_ge(vector, vector) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_vector_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_gt(vector, vector) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_vector_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_cmp(vector, vector) RETURNS int4
	AS 'MODULE_PATHNAME', 'pgwarp_vector_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_hash(vector) RETURNS int4
	AS 'MODULE_PATHNAME', 'pgwarp_vector_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_hash_extended(vector, int8) RETURNS int8
	AS 'MODULE_PATHNAME', 'pgwarp_vector_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_l2_squared_distance(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_vector_l2_squared_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_negative_inner_product(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_vector_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_spherical_distance(vector, vector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_vector_spherical_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_accum(double precision[], vector) RETURNS double precision[]
	AS 'MODULE_PATHNAME', 'pgwarp_vector_accum' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_avg(double precision[]) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector_avg' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_combine(double precision[], double precision[]) RETURNS double precision[]
	AS 'MODULE_PATHNAME', 'pgwarp_vector_combine' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION pgwarp_dimension_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector(vector, integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT pgwarp_dimension_support;

CREATE OR REPLACE FUNCTION array_to_vector(integer[], integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_vector(real[], integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_vector(double precision[], integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_vector(numeric[], integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_to_float4(vector, integer, boolean) RETURNS real[]
	AS 'MODULE_PATHNAME', 'pgwarp_vector_to_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_in(cstring, oid, integer) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_out(halfvec) RETURNS cstring
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_typmod_in(cstring[]) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_typmod_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_recv(internal, oid, integer) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_send(halfvec) RETURNS bytea
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_distance(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION inner_product(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION cosine_distance(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l1_distance(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_dims(halfvec) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_vector_dims' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_norm(halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_l2_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_normalize(halfvec) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION binary_quantize(halfvec) RETURNS bit
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_binary_quantize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION subvector(halfvec, int, int) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_subvector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_add(halfvec, halfvec) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_add' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_sub(halfvec, halfvec) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_sub' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_mul(halfvec, halfvec) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_mul' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_concat(halfvec, halfvec) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_lt(halfvec, halfvec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_le(halfvec, halfvec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_eq(halfvec, halfvec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_ne(halfvec, halfvec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_ge(halfvec, halfvec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_gt(halfvec, halfvec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_cmp(halfvec, halfvec) RETURNS int4
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_hash(halfvec) RETURNS int4
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_hash_extended(halfvec, int8) RETURNS int8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_l2_squared_distance(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_l2_squared_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_negative_inner_product(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_spherical_distance(halfvec, halfvec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_spherical_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_accum(double precision[], halfvec) RETURNS double precision[]
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_accum' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_avg(double precision[]) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_avg' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_combine(double precision[], double precision[]) RETURNS double precision[]
	AS 'MODULE_PATHNAME', 'pgwarp_vector_combine' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec(halfvec, integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT pgwarp_dimension_support;

CREATE OR REPLACE FUNCTION halfvec_to_vector(halfvec, integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION vector_to_halfvec(vector, integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_vector_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_halfvec(integer[], integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_halfvec(real[], integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_halfvec(double precision[], integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION array_to_halfvec(numeric[], integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_to_float4(halfvec, integer, boolean) RETURNS real[]
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_to_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION hamming_distance(bit, bit) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_hamming_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION jaccard_distance(bit, bit) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_jaccard_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION knn_search(index regclass, queries vector[], k integer)
	RETURNS TABLE (query integer, tid tid, distance double precision)
	AS 'MODULE_PATHNAME', 'pgwarp_knn_search_array' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;

CREATE OR REPLACE FUNCTION knn_search(index regclass, queries halfvec[], k integer)
	RETURNS TABLE (query integer, tid tid, distance double precision)
	AS 'MODULE_PATHNAME', 'pgwarp_knn_search_array' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;

CREATE OR REPLACE FUNCTION knn_search(index regclass, queries bit[], k integer)
	RETURNS TABLE (query integer, tid tid, distance double precision)
	AS 'MODULE_PATHNAME', 'pgwarp_knn_search_array' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;

CREATE OR REPLACE FUNCTION knn_search(index regclass, query text, k integer)
	RETURNS TABLE (query integer, tid tid, distance double precision)
	AS 'MODULE_PATHNAME', 'pgwarp_knn_search_query' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000;

CREATE OR REPLACE FUNCTION knn_graph(index regclass, k integer, first_block bigint DEFAULT NULL, last_block bigint DEFAULT NULL)
	RETURNS TABLE (tid tid, neighbor tid, distance double precision)
	AS 'MODULE_PATHNAME', 'pgwarp_knn_graph' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100000;

CREATE OR REPLACE FUNCTION kmeans(rel regclass, "column" name, k integer, iterations integer DEFAULT 20, seed bigint DEFAULT 1,
	sample bigint DEFAULT NULL)
	RETURNS TABLE (id integer, centroid vector)
	AS 'MODULE_PATHNAME', 'pgwarp_kmeans' LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 100;

CREATE OR REPLACE FUNCTION nearest_centroid(vector, vector[]) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_nearest_centroid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- support function 2: the elements of the type that an operator class is for

CREATE FUNCTION pgwarp_element_float32(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_float16(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_bit(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

ALTER OPERATOR FAMILY vector_l2_ops USING exact ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_ip_ops USING exact ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_cosine_ops USING exact ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_l1_ops USING exact ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_l2_ops USING ivfadc ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_ip_ops USING ivfadc ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_cosine_ops USING ivfadc ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_l2_ops USING graph ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_ip_ops USING graph ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_cosine_ops USING graph ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY vector_l1_ops USING graph ADD FUNCTION 2 (vector, vector) pgwarp_element_float32(internal);

ALTER OPERATOR FAMILY halfvec_l2_ops USING exact ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_ip_ops USING exact ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_cosine_ops USING exact ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_l1_ops USING exact ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_l2_ops USING ivfadc ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_ip_ops USING ivfadc ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_cosine_ops USING ivfadc ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_l2_ops USING graph ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_ip_ops USING graph ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_cosine_ops USING graph ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY halfvec_l1_ops USING graph ADD FUNCTION 2 (halfvec, halfvec) pgwarp_element_float16(internal);

ALTER OPERATOR FAMILY bit_hamming_ops USING exact ADD FUNCTION 2 (bit, bit) pgwarp_element_bit(internal);

ALTER OPERATOR FAMILY bit_jaccard_ops USING exact ADD FUNCTION 2 (bit, bit) pgwarp_element_bit(internal);

ALTER OPERATOR FAMILY bit_hamming_ops USING graph ADD FUNCTION 2 (bit, bit) pgwarp_element_bit(internal);

ALTER OPERATOR FAMILY bit_jaccard_ops USING graph ADD FUNCTION 2 (bit, bit) pgwarp_element_bit(internal);

-- sparsevec: type

CREATE TYPE sparsevec;

CREATE FUNCTION sparsevec_in(cstring, oid, integer) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_out(sparsevec) RETURNS cstring
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_typmod_in(cstring[]) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_typmod_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_recv(internal, oid, integer) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_send(sparsevec) RETURNS bytea
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE sparsevec (
	INPUT = sparsevec_in,
	OUTPUT = sparsevec_out,
	TYPMOD_IN = sparsevec_typmod_in,
	RECEIVE = sparsevec_recv,
	SEND = sparsevec_send,
	STORAGE = external
);
COMMENT ON TYPE sparsevec IS 'sparse vector of up to 16,000 single-precision elements that are not zero';

-- sparsevec: functions

CREATE FUNCTION l2_distance(sparsevec, sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION inner_product(sparsevec, sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION cosine_distance(sparsevec, sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION l1_distance(sparsevec, sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION l2_norm(sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_l2_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION l2_normalize(sparsevec) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- sparsevec: functions behind operators and operator classes

CREATE FUNCTION sparsevec_lt(sparsevec, sparsevec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_le(sparsevec, sparsevec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_eq(sparsevec, sparsevec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_ne(sparsevec, sparsevec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_ge(sparsevec, sparsevec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_gt(sparsevec, sparsevec) RETURNS bool
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_cmp(sparsevec, sparsevec) RETURNS int4
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_hash(sparsevec) RETURNS int4
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_hash_extended(sparsevec, int8) RETURNS int8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_l2_squared_distance(sparsevec, sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_l2_squared_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_negative_inner_product(sparsevec, sparsevec) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- sparsevec: casts

CREATE FUNCTION sparsevec(sparsevec, integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
	SUPPORT pgwarp_dimension_support;

CREATE FUNCTION sparsevec_to_vector(sparsevec, integer, boolean) RETURNS vector
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION vector_to_sparsevec(vector, integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_vector_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION sparsevec_to_halfvec(sparsevec, integer, boolean) RETURNS halfvec
	AS 'MODULE_PATHNAME', 'pgwarp_sparsevec_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION halfvec_to_sparsevec(halfvec, integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_halfvec_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION array_to_sparsevec(integer[], integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION array_to_sparsevec(real[], integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION array_to_sparsevec(double precision[], integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION array_to_sparsevec(numeric[], integer, boolean) RETURNS sparsevec
	AS 'MODULE_PATHNAME', 'pgwarp_array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE CAST (sparsevec AS sparsevec)
	WITH FUNCTION sparsevec(sparsevec, integer, boolean) AS IMPLICIT;

CREATE CAST (sparsevec AS vector)
	WITH FUNCTION sparsevec_to_vector(sparsevec, integer, boolean) AS ASSIGNMENT;

CREATE CAST (vector AS sparsevec)
	WITH FUNCTION vector_to_sparsevec(vector, integer, boolean) AS IMPLICIT;

CREATE CAST (sparsevec AS halfvec)
	WITH FUNCTION sparsevec_to_halfvec(sparsevec, integer, boolean) AS ASSIGNMENT;

CREATE CAST (halfvec AS sparsevec)
	WITH FUNCTION halfvec_to_sparsevec(halfvec, integer, boolean) AS IMPLICIT;

CREATE CAST (integer[] AS sparsevec)
	WITH FUNCTION array_to_sparsevec(integer[], integer, boolean) AS ASSIGNMENT;

CREATE CAST (real[] AS sparsevec)
	WITH FUNCTION array_to_sparsevec(real[], integer, boolean) AS ASSIGNMENT;

CREATE CAST (double precision[] AS sparsevec)
	WITH FUNCTION array_to_sparsevec(double precision[], integer, boolean) AS ASSIGNMENT;

CREATE CAST (numeric[] AS sparsevec)
	WITH FUNCTION array_to_sparsevec(numeric[], integer, boolean) AS ASSIGNMENT;

-- sparsevec: operators

CREATE OPERATOR <-> (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = l2_distance,
	COMMUTATOR = '<->'
);

CREATE OPERATOR <#> (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_negative_inner_product,
	COMMUTATOR = '<#>'
);

CREATE OPERATOR <=> (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = cosine_distance,
	COMMUTATOR = '<=>'
);

CREATE OPERATOR <+> (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = l1_distance,
	COMMUTATOR = '<+>'
);

CREATE OPERATOR < (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_lt,
	COMMUTATOR = >, NEGATOR = >=,
	RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);

CREATE OPERATOR <= (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_le,
	COMMUTATOR = >=, NEGATOR = >,
	RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);

CREATE OPERATOR = (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_eq,
	COMMUTATOR = =, NEGATOR = <>,
	RESTRICT = eqsel, JOIN = eqjoinsel,
	HASHES, MERGES
);

CREATE OPERATOR <> (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_ne,
	COMMUTATOR = <>, NEGATOR = =,
	RESTRICT = neqsel, JOIN = neqjoinsel
);

CREATE OPERATOR >= (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_ge,
	COMMUTATOR = <=, NEGATOR = <,
	RESTRICT = scalargesel, JOIN = scalargejoinsel
);

CREATE OPERATOR > (
	LEFTARG = sparsevec, RIGHTARG = sparsevec, PROCEDURE = sparsevec_gt,
	COMMUTATOR = <, NEGATOR = <=,
	RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);

-- sparsevec: operator classes of btree and hash

CREATE OPERATOR CLASS sparsevec_ops
	DEFAULT FOR TYPE sparsevec USING btree AS
	OPERATOR 1 < ,
	OPERATOR 2 <= ,
	OPERATOR 3 = ,
	OPERATOR 4 >= ,
	OPERATOR 5 > ,
	FUNCTION 1 sparsevec_cmp(sparsevec, sparsevec);

CREATE OPERATOR CLASS sparsevec_ops
	DEFAULT FOR TYPE sparsevec USING hash AS
	OPERATOR 1 = ,
	FUNCTION 1 sparsevec_hash(sparsevec),
	FUNCTION 2 sparsevec_hash_extended(sparsevec, int8);

-- text: edit distances and operators

CREATE FUNCTION edit_distance(text, text) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_edit_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION edit_distance(text, text, at_most integer) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_edit_distance_at_most' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION edit_distance_transpositions(text, text) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_edit_distance_transpositions' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION text_edit_distance(text, text) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_text_edit_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION substring_edit_distance(text, text) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_substring_edit_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION text_edit_distance_transpositions(text, text) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_text_edit_distance_transpositions' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION contained_edit_distance(text, text) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_contained_edit_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION gram_distance(text, text) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_gram_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION jaro_winkler(text, text) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_jaro_winkler' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;

CREATE OPERATOR <~~> (
	LEFTARG = text, RIGHTARG = text, PROCEDURE = text_edit_distance,
	COMMUTATOR = '<~~>'
);

CREATE OPERATOR <~^~> (
	LEFTARG = text, RIGHTARG = text, PROCEDURE = text_edit_distance_transpositions,
	COMMUTATOR = '<~^~>'
);

-- word <<~~>> text, and the other way round
CREATE OPERATOR <<~~>> (
	LEFTARG = text, RIGHTARG = text, PROCEDURE = substring_edit_distance,
	COMMUTATOR = '>>~~<<'
);

CREATE OPERATOR >>~~<< (
	LEFTARG = text, RIGHTARG = text, PROCEDURE = contained_edit_distance,
	COMMUTATOR = '<<~~>>'
);

CREATE OPERATOR <%%> (
	LEFTARG = text, RIGHTARG = text, PROCEDURE = gram_distance,
	COMMUTATOR = '<%%>'
);

-- sets: distances and operators

CREATE FUNCTION overlap_distance(anycompatiblearray, anycompatiblearray) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_array_overlap_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION overlap_distance(tsvector, tsvector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_tsvector_overlap_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION set_jaccard_distance(anycompatiblearray, anycompatiblearray) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_array_jaccard_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION set_jaccard_distance(tsvector, tsvector) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_tsvector_jaccard_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE OPERATOR <&> (
	LEFTARG = anycompatiblearray, RIGHTARG = anycompatiblearray, PROCEDURE = overlap_distance,
	COMMUTATOR = '<&>'
);

CREATE OPERATOR <&> (
	LEFTARG = tsvector, RIGHTARG = tsvector, PROCEDURE = overlap_distance,
	COMMUTATOR = '<&>'
);

CREATE OPERATOR <%> (
	LEFTARG = anycompatiblearray, RIGHTARG = anycompatiblearray, PROCEDURE = set_jaccard_distance,
	COMMUTATOR = '<%>'
);

CREATE OPERATOR <%> (
	LEFTARG = tsvector, RIGHTARG = tsvector, PROCEDURE = set_jaccard_distance,
	COMMUTATOR = '<%>'
);

-- attributes: rows with ranges

CREATE TYPE attributes;

CREATE FUNCTION attributes_in(cstring) RETURNS attributes
	AS 'MODULE_PATHNAME', 'pgwarp_attributes_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION attributes_out(attributes) RETURNS cstring
	AS 'MODULE_PATHNAME', 'pgwarp_parts_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION attributes_recv(internal) RETURNS attributes
	AS 'MODULE_PATHNAME', 'pgwarp_attributes_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION attributes_send(attributes) RETURNS bytea
	AS 'MODULE_PATHNAME', 'pgwarp_parts_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE attributes (
	INPUT = attributes_in,
	OUTPUT = attributes_out,
	RECEIVE = attributes_recv,
	SEND = attributes_send,
	STORAGE = extended
);
COMMENT ON TYPE attributes IS 'names with values, which are numbers or categories';

CREATE TYPE attribute_query;

CREATE FUNCTION attribute_query_in(cstring) RETURNS attribute_query
	AS 'MODULE_PATHNAME', 'pgwarp_attribute_query_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION attribute_query_out(attribute_query) RETURNS cstring
	AS 'MODULE_PATHNAME', 'pgwarp_parts_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION attribute_query_recv(internal) RETURNS attribute_query
	AS 'MODULE_PATHNAME', 'pgwarp_attribute_query_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION attribute_query_send(attribute_query) RETURNS bytea
	AS 'MODULE_PATHNAME', 'pgwarp_parts_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE attribute_query (
	INPUT = attribute_query_in,
	OUTPUT = attribute_query_out,
	RECEIVE = attribute_query_recv,
	SEND = attribute_query_send,
	STORAGE = extended
);
COMMENT ON TYPE attribute_query IS 'names with ranges of numbers or sets of categories';

-- of a row's columns, and of names and values in turn
CREATE FUNCTION attributes(record) RETURNS attributes
	AS 'MODULE_PATHNAME', 'pgwarp_attributes_of_row' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;

CREATE FUNCTION attributes(text, VARIADIC "any") RETURNS attributes
	AS 'MODULE_PATHNAME', 'pgwarp_attributes_of_pairs' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20;

-- the text of attributes is also that of a query, which they meet wholly
CREATE CAST (attributes AS attribute_query) WITH INOUT;

CREATE FUNCTION match_count(attributes, attribute_query) RETURNS integer
	AS 'MODULE_PATHNAME', 'pgwarp_match_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION overlap_distance(attributes, attribute_query) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_attributes_overlap_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE OPERATOR <&> (
	LEFTARG = attributes, RIGHTARG = attribute_query, PROCEDURE = overlap_distance
);

-- documents ranked by BM25: lexemes with weights

CREATE TYPE bm25_query;

CREATE FUNCTION bm25_query_in(cstring) RETURNS bm25_query
	AS 'MODULE_PATHNAME', 'pgwarp_bm25_query_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bm25_query_out(bm25_query) RETURNS cstring
	AS 'MODULE_PATHNAME', 'pgwarp_parts_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bm25_query_recv(internal) RETURNS bm25_query
	AS 'MODULE_PATHNAME', 'pgwarp_bm25_query_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bm25_query_send(bm25_query) RETURNS bytea
	AS 'MODULE_PATHNAME', 'pgwarp_parts_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE bm25_query (
	INPUT = bm25_query_in,
	OUTPUT = bm25_query_out,
	RECEIVE = bm25_query_recv,
	SEND = bm25_query_send,
	STORAGE = extended
);
COMMENT ON TYPE bm25_query IS 'lexemes with weights, and the correction of scores by length';

CREATE FUNCTION bm25_score(tsvector, bm25_query) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_bm25_score' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;

CREATE FUNCTION bm25_distance(tsvector, bm25_query) RETURNS float8
	AS 'MODULE_PATHNAME', 'pgwarp_bm25_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;

CREATE OPERATOR <&> (
	LEFTARG = tsvector, RIGHTARG = bm25_query, PROCEDURE = bm25_distance
);

-- weights by the statistics of an index; the words of a text are those of default_text_search_config
CREATE FUNCTION bm25_query(index regclass, words tsvector, k1 float8 DEFAULT 1.2, b float8 DEFAULT 0.75)
	RETURNS bm25_query
	AS 'MODULE_PATHNAME', 'pgwarp_bm25_query_of_tsvector' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;

CREATE FUNCTION bm25_query(index regclass, words tsquery, k1 float8 DEFAULT 1.2, b float8 DEFAULT 0.75)
	RETURNS bm25_query
	AS 'MODULE_PATHNAME', 'pgwarp_bm25_query_of_tsquery' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;

CREATE FUNCTION bm25_query(index regclass, words text, k1 float8 DEFAULT 1.2, b float8 DEFAULT 0.75)
	RETURNS bm25_query LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED COST 1000
	RETURN bm25_query(index, pg_catalog.to_tsvector(words), k1, b);

-- The name of an index is looked up by each statement: an object that a literal name is written in does not depend on the
-- index, which a dump restores after all objects that it might stand in.
CREATE FUNCTION bm25_query(index text, words tsvector, k1 float8 DEFAULT 1.2, b float8 DEFAULT 0.75)
	RETURNS bm25_query LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED COST 1000
	RETURN bm25_query(index::pg_catalog.regclass, words, k1, b);

CREATE FUNCTION bm25_query(index text, words tsquery, k1 float8 DEFAULT 1.2, b float8 DEFAULT 0.75)
	RETURNS bm25_query LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED COST 1000
	RETURN bm25_query(index::pg_catalog.regclass, words, k1, b);

CREATE FUNCTION bm25_query(index text, words text, k1 float8 DEFAULT 1.2, b float8 DEFAULT 0.75)
	RETURNS bm25_query LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED COST 1000
	RETURN bm25_query(index::pg_catalog.regclass, pg_catalog.to_tsvector(words), k1, b);

-- state of the engine and of the resident indexes

CREATE VIEW pgwarp_status_server AS
	SELECT s.engine_pid, s.device, s.memory_used, s.memory_allowed, s.host_memory_used, s.host_memory_allowed,
		s.uptime, s.connections, s.builds, s.engine_starts
	FROM pgwarp_status_engine() AS s
	LIMIT 1;
COMMENT ON VIEW pgwarp_status_server IS 'pgwarp-engine: one row';

CREATE VIEW pgwarp_status_indexes AS
	SELECT p.index, p.database, p.tablespace, p.filenode, p.method, p.index_device, p.gpu, p.placement, p.loading,
		p.rows, p.delta_rows, p.delta_rows_indexed, p.delta_cost, p.dead_rows, p.bytes, p.device_bytes, p.searches,
		p.batches, p.mean_batch_width, p.max_batch_width, p.mean_device_ms, p.mean_queue_ms, p.mean_search_ms,
		p.mean_answer_ms
	FROM pgwarp_status AS p
	WHERE p.filenode IS NOT NULL;
COMMENT ON VIEW pgwarp_status_indexes IS 'the indexes that are resident in pgwarp-engine';

-- The function shows a role no indexes but those of tables that it may read; monitors see all.
GRANT SELECT ON pgwarp_status, pgwarp_status_server, pgwarp_status_indexes TO PUBLIC;

-- text by edit distance, sets by overlap, vectors by locality-sensitive hashes

CREATE FUNCTION pgwarp_matchcount_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD matchcount TYPE INDEX HANDLER pgwarp_matchcount_handler;

COMMENT ON ACCESS METHOD matchcount IS 'inverted index of parts: text by edit distance, sets by overlap, vectors by locality-sensitive hashes';

CREATE FUNCTION pgwarp_metric_edit(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_metric_edit_transpositions(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_metric_edit_substring(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_metric_gram_jaccard(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_metric_overlap(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_metric_set_jaccard(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_metric_bm25(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_text(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_set(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_bag(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_attribute_set(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_minhash_set(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION pgwarp_element_sparse(internal) RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE OPERATOR CLASS text_edit_ops
	DEFAULT FOR TYPE text USING matchcount AS
	OPERATOR 1 <~~> (text, text) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_edit(internal),
	FUNCTION 2 pgwarp_element_text(internal);

CREATE OPERATOR CLASS text_transpositions_ops
	FOR TYPE text USING matchcount AS
	OPERATOR 1 <~^~> (text, text) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_edit_transpositions(internal),
	FUNCTION 2 pgwarp_element_text(internal);

CREATE OPERATOR CLASS text_substring_ops
	FOR TYPE text USING matchcount AS
	OPERATOR 1 >>~~<< (text, text) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_edit_substring(internal),
	FUNCTION 2 pgwarp_element_text(internal);

CREATE OPERATOR CLASS text_gram_ops
	FOR TYPE text USING matchcount AS
	OPERATOR 1 <%%> (text, text) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_gram_jaccard(internal),
	FUNCTION 2 pgwarp_element_text(internal);

CREATE OPERATOR CLASS tsvector_bm25_ops
	FOR TYPE tsvector USING matchcount AS
	OPERATOR 1 <&> (tsvector, bm25_query) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_bm25(internal),
	FUNCTION 2 pgwarp_element_bag(internal);

CREATE OPERATOR CLASS attributes_overlap_ops
	DEFAULT FOR TYPE attributes USING matchcount AS
	OPERATOR 1 <&> (attributes, attribute_query) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_attribute_set(internal);

CREATE OPERATOR CLASS vector_l2_ops
	DEFAULT FOR TYPE vector USING matchcount AS
	OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l2(internal),
	FUNCTION 2 pgwarp_element_float32(internal);

CREATE OPERATOR CLASS vector_cosine_ops
	FOR TYPE vector USING matchcount AS
	OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal),
	FUNCTION 2 pgwarp_element_float32(internal);

CREATE OPERATOR CLASS vector_l1_ops
	FOR TYPE vector USING matchcount AS
	OPERATOR 1 <+> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l1(internal),
	FUNCTION 2 pgwarp_element_float32(internal);

CREATE OPERATOR CLASS halfvec_l2_ops
	DEFAULT FOR TYPE halfvec USING matchcount AS
	OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l2(internal),
	FUNCTION 2 pgwarp_element_float16(internal);

CREATE OPERATOR CLASS halfvec_cosine_ops
	FOR TYPE halfvec USING matchcount AS
	OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal),
	FUNCTION 2 pgwarp_element_float16(internal);

CREATE OPERATOR CLASS halfvec_l1_ops
	FOR TYPE halfvec USING matchcount AS
	OPERATOR 1 <+> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l1(internal),
	FUNCTION 2 pgwarp_element_float16(internal);

CREATE OPERATOR CLASS int2_array_overlap_ops
	DEFAULT FOR TYPE int2[] USING matchcount AS
	OPERATOR 1 <&> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS int2_array_jaccard_ops
	FOR TYPE int2[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS int4_array_overlap_ops
	DEFAULT FOR TYPE int4[] USING matchcount AS
	OPERATOR 1 <&> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS int4_array_jaccard_ops
	FOR TYPE int4[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS int8_array_overlap_ops
	DEFAULT FOR TYPE int8[] USING matchcount AS
	OPERATOR 1 <&> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS int8_array_jaccard_ops
	FOR TYPE int8[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS text_array_overlap_ops
	DEFAULT FOR TYPE text[] USING matchcount AS
	OPERATOR 1 <&> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS text_array_jaccard_ops
	FOR TYPE text[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS varchar_array_overlap_ops
	DEFAULT FOR TYPE varchar[] USING matchcount AS
	OPERATOR 1 <&> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS varchar_array_jaccard_ops
	FOR TYPE varchar[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS tsvector_overlap_ops
	DEFAULT FOR TYPE tsvector USING matchcount AS
	OPERATOR 1 <&> (tsvector, tsvector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_overlap(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS tsvector_jaccard_ops
	FOR TYPE tsvector USING matchcount AS
	OPERATOR 1 <%> (tsvector, tsvector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_set(internal);

CREATE OPERATOR CLASS int2_array_minhash_ops
	FOR TYPE int2[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_minhash_set(internal);

CREATE OPERATOR CLASS int4_array_minhash_ops
	FOR TYPE int4[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_minhash_set(internal);

CREATE OPERATOR CLASS int8_array_minhash_ops
	FOR TYPE int8[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_minhash_set(internal);

CREATE OPERATOR CLASS text_array_minhash_ops
	FOR TYPE text[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_minhash_set(internal);

CREATE OPERATOR CLASS varchar_array_minhash_ops
	FOR TYPE varchar[] USING matchcount AS
	OPERATOR 1 <%> (anycompatiblearray, anycompatiblearray) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_minhash_set(internal);

CREATE OPERATOR CLASS tsvector_minhash_ops
	FOR TYPE tsvector USING matchcount AS
	OPERATOR 1 <%> (tsvector, tsvector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_set_jaccard(internal),
	FUNCTION 2 pgwarp_element_minhash_set(internal);

CREATE OPERATOR CLASS sparsevec_l2_ops
	DEFAULT FOR TYPE sparsevec USING exact AS
	OPERATOR 1 <-> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l2(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_ip_ops
	FOR TYPE sparsevec USING exact AS
	OPERATOR 1 <#> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_inner_product(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_cosine_ops
	FOR TYPE sparsevec USING exact AS
	OPERATOR 1 <=> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_l1_ops
	FOR TYPE sparsevec USING exact AS
	OPERATOR 1 <+> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l1(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_l2_ops
	DEFAULT FOR TYPE sparsevec USING matchcount AS
	OPERATOR 1 <-> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l2(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_ip_ops
	FOR TYPE sparsevec USING matchcount AS
	OPERATOR 1 <#> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_inner_product(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_cosine_ops
	FOR TYPE sparsevec USING matchcount AS
	OPERATOR 1 <=> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

CREATE OPERATOR CLASS sparsevec_l1_ops
	FOR TYPE sparsevec USING matchcount AS
	OPERATOR 1 <+> (sparsevec, sparsevec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l1(internal),
	FUNCTION 2 pgwarp_element_sparse(internal);

-- estimated similarities

CREATE FUNCTION matchcount_estimate(index regclass, query vector, k integer DEFAULT 10,
	OUT tid tid,
	OUT similarity double precision,
	OUT error double precision)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'pgwarp_estimate_similarity' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION matchcount_estimate(regclass, vector, integer) IS 'the rows that agree with a query on most hash functions, and the similarities that this tells';

CREATE FUNCTION matchcount_estimate(index regclass, query anyarray, k integer DEFAULT 10,
	OUT tid tid,
	OUT similarity double precision,
	OUT error double precision)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'pgwarp_estimate_set_similarity' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION matchcount_estimate(regclass, anyarray, integer) IS 'the rows that agree with a set on most hash functions, and the similarities that this tells';

CREATE FUNCTION matchcount_estimate(index regclass, query tsvector, k integer DEFAULT 10,
	OUT tid tid,
	OUT similarity double precision,
	OUT error double precision)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'pgwarp_estimate_set_similarity' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
COMMENT ON FUNCTION matchcount_estimate(regclass, tsvector, integer) IS 'the rows that agree with a set on most hash functions, and the similarities that this tells';

-- the product quantization tree

CREATE FUNCTION pgwarp_pqtree_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD pqtree TYPE INDEX HANDLER pgwarp_pqtree_handler;

COMMENT ON ACCESS METHOD pqtree IS 'product quantization tree with line codes and exact re-rank';

CREATE OPERATOR CLASS vector_l2_ops
	DEFAULT FOR TYPE vector USING pqtree AS
	OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l2(internal),
	FUNCTION 2 pgwarp_element_float32(internal);

CREATE OPERATOR CLASS vector_ip_ops
	FOR TYPE vector USING pqtree AS
	OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_inner_product(internal),
	FUNCTION 2 pgwarp_element_float32(internal);

CREATE OPERATOR CLASS vector_cosine_ops
	FOR TYPE vector USING pqtree AS
	OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal),
	FUNCTION 2 pgwarp_element_float32(internal);

CREATE OPERATOR CLASS halfvec_l2_ops
	DEFAULT FOR TYPE halfvec USING pqtree AS
	OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_l2(internal),
	FUNCTION 2 pgwarp_element_float16(internal);

CREATE OPERATOR CLASS halfvec_ip_ops
	FOR TYPE halfvec USING pqtree AS
	OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_inner_product(internal),
	FUNCTION 2 pgwarp_element_float16(internal);

CREATE OPERATOR CLASS halfvec_cosine_ops
	FOR TYPE halfvec USING pqtree AS
	OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
	FUNCTION 1 pgwarp_metric_cosine(internal),
	FUNCTION 2 pgwarp_element_float16(internal);

-- generated by scripts/describe: filter classes
-- operator classes of columns to filter by

CREATE OPERATOR CLASS filter_ops
	DEFAULT FOR TYPE anyelement USING exact AS
	OPERATOR 1 < (int2, int2),
	OPERATOR 2 <= (int2, int2),
	OPERATOR 3 = (int2, int2),
	OPERATOR 4 >= (int2, int2),
	OPERATOR 5 > (int2, int2),
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int4),
	OPERATOR 2 <= (int4, int4),
	OPERATOR 3 = (int4, int4),
	OPERATOR 4 >= (int4, int4),
	OPERATOR 5 > (int4, int4),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	OPERATOR 1 < (int8, int8),
	OPERATOR 2 <= (int8, int8),
	OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8),
	OPERATOR 5 > (int8, int8),
	OPERATOR 1 < (float4, float4),
	OPERATOR 2 <= (float4, float4),
	OPERATOR 3 = (float4, float4),
	OPERATOR 4 >= (float4, float4),
	OPERATOR 5 > (float4, float4),
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4),
	OPERATOR 1 < (float8, float8),
	OPERATOR 2 <= (float8, float8),
	OPERATOR 3 = (float8, float8),
	OPERATOR 4 >= (float8, float8),
	OPERATOR 5 > (float8, float8),
	OPERATOR 1 < (numeric, numeric),
	OPERATOR 2 <= (numeric, numeric),
	OPERATOR 3 = (numeric, numeric),
	OPERATOR 4 >= (numeric, numeric),
	OPERATOR 5 > (numeric, numeric),
	OPERATOR 1 < (bool, bool),
	OPERATOR 2 <= (bool, bool),
	OPERATOR 3 = (bool, bool),
	OPERATOR 4 >= (bool, bool),
	OPERATOR 5 > (bool, bool),
	OPERATOR 1 < (date, date),
	OPERATOR 2 <= (date, date),
	OPERATOR 3 = (date, date),
	OPERATOR 4 >= (date, date),
	OPERATOR 5 > (date, date),
	OPERATOR 1 < (timestamp, timestamp),
	OPERATOR 2 <= (timestamp, timestamp),
	OPERATOR 3 = (timestamp, timestamp),
	OPERATOR 4 >= (timestamp, timestamp),
	OPERATOR 5 > (timestamp, timestamp),
	OPERATOR 1 < (timestamptz, timestamptz),
	OPERATOR 2 <= (timestamptz, timestamptz),
	OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 >= (timestamptz, timestamptz),
	OPERATOR 5 > (timestamptz, timestamptz),
	OPERATOR 1 < (oid, oid),
	OPERATOR 2 <= (oid, oid),
	OPERATOR 3 = (oid, oid),
	OPERATOR 4 >= (oid, oid),
	OPERATOR 5 > (oid, oid),
	OPERATOR 1 < (anyenum, anyenum),
	OPERATOR 2 <= (anyenum, anyenum),
	OPERATOR 3 = (anyenum, anyenum),
	OPERATOR 4 >= (anyenum, anyenum),
	OPERATOR 5 > (anyenum, anyenum),
	OPERATOR 1 < (uuid, uuid),
	OPERATOR 2 <= (uuid, uuid),
	OPERATOR 3 = (uuid, uuid),
	OPERATOR 4 >= (uuid, uuid),
	OPERATOR 5 > (uuid, uuid),
	OPERATOR 3 = (text, text),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 3 = (inet, inet);

CREATE OPERATOR CLASS filter_ops
	DEFAULT FOR TYPE anyelement USING ivfadc AS
	OPERATOR 1 < (int2, int2),
	OPERATOR 2 <= (int2, int2),
	OPERATOR 3 = (int2, int2),
	OPERATOR 4 >= (int2, int2),
	OPERATOR 5 > (int2, int2),
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int4),
	OPERATOR 2 <= (int4, int4),
	OPERATOR 3 = (int4, int4),
	OPERATOR 4 >= (int4, int4),
	OPERATOR 5 > (int4, int4),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	OPERATOR 1 < (int8, int8),
	OPERATOR 2 <= (int8, int8),
	OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8),
	OPERATOR 5 > (int8, int8),
	OPERATOR 1 < (float4, float4),
	OPERATOR 2 <= (float4, float4),
	OPERATOR 3 = (float4, float4),
	OPERATOR 4 >= (float4, float4),
	OPERATOR 5 > (float4, float4),
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4),
	OPERATOR 1 < (float8, float8),
	OPERATOR 2 <= (float8, float8),
	OPERATOR 3 = (float8, float8),
	OPERATOR 4 >= (float8, float8),
	OPERATOR 5 > (float8, float8),
	OPERATOR 1 < (numeric, numeric),
	OPERATOR 2 <= (numeric, numeric),
	OPERATOR 3 = (numeric, numeric),
	OPERATOR 4 >= (numeric, numeric),
	OPERATOR 5 > (numeric, numeric),
	OPERATOR 1 < (bool, bool),
	OPERATOR 2 <= (bool, bool),
	OPERATOR 3 = (bool, bool),
	OPERATOR 4 >= (bool, bool),
	OPERATOR 5 > (bool, bool),
	OPERATOR 1 < (date, date),
	OPERATOR 2 <= (date, date),
	OPERATOR 3 = (date, date),
	OPERATOR 4 >= (date, date),
	OPERATOR 5 > (date, date),
	OPERATOR 1 < (timestamp, timestamp),
	OPERATOR 2 <= (timestamp, timestamp),
	OPERATOR 3 = (timestamp, timestamp),
	OPERATOR 4 >= (timestamp, timestamp),
	OPERATOR 5 > (timestamp, timestamp),
	OPERATOR 1 < (timestamptz, timestamptz),
	OPERATOR 2 <= (timestamptz, timestamptz),
	OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 >= (timestamptz, timestamptz),
	OPERATOR 5 > (timestamptz, timestamptz),
	OPERATOR 1 < (oid, oid),
	OPERATOR 2 <= (oid, oid),
	OPERATOR 3 = (oid, oid),
	OPERATOR 4 >= (oid, oid),
	OPERATOR 5 > (oid, oid),
	OPERATOR 1 < (anyenum, anyenum),
	OPERATOR 2 <= (anyenum, anyenum),
	OPERATOR 3 = (anyenum, anyenum),
	OPERATOR 4 >= (anyenum, anyenum),
	OPERATOR 5 > (anyenum, anyenum),
	OPERATOR 1 < (uuid, uuid),
	OPERATOR 2 <= (uuid, uuid),
	OPERATOR 3 = (uuid, uuid),
	OPERATOR 4 >= (uuid, uuid),
	OPERATOR 5 > (uuid, uuid),
	OPERATOR 3 = (text, text),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 3 = (inet, inet);

CREATE OPERATOR CLASS filter_ops
	DEFAULT FOR TYPE anyelement USING pqtree AS
	OPERATOR 1 < (int2, int2),
	OPERATOR 2 <= (int2, int2),
	OPERATOR 3 = (int2, int2),
	OPERATOR 4 >= (int2, int2),
	OPERATOR 5 > (int2, int2),
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int4),
	OPERATOR 2 <= (int4, int4),
	OPERATOR 3 = (int4, int4),
	OPERATOR 4 >= (int4, int4),
	OPERATOR 5 > (int4, int4),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	OPERATOR 1 < (int8, int8),
	OPERATOR 2 <= (int8, int8),
	OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8),
	OPERATOR 5 > (int8, int8),
	OPERATOR 1 < (float4, float4),
	OPERATOR 2 <= (float4, float4),
	OPERATOR 3 = (float4, float4),
	OPERATOR 4 >= (float4, float4),
	OPERATOR 5 > (float4, float4),
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4),
	OPERATOR 1 < (float8, float8),
	OPERATOR 2 <= (float8, float8),
	OPERATOR 3 = (float8, float8),
	OPERATOR 4 >= (float8, float8),
	OPERATOR 5 > (float8, float8),
	OPERATOR 1 < (numeric, numeric),
	OPERATOR 2 <= (numeric, numeric),
	OPERATOR 3 = (numeric, numeric),
	OPERATOR 4 >= (numeric, numeric),
	OPERATOR 5 > (numeric, numeric),
	OPERATOR 1 < (bool, bool),
	OPERATOR 2 <= (bool, bool),
	OPERATOR 3 = (bool, bool),
	OPERATOR 4 >= (bool, bool),
	OPERATOR 5 > (bool, bool),
	OPERATOR 1 < (date, date),
	OPERATOR 2 <= (date, date),
	OPERATOR 3 = (date, date),
	OPERATOR 4 >= (date, date),
	OPERATOR 5 > (date, date),
	OPERATOR 1 < (timestamp, timestamp),
	OPERATOR 2 <= (timestamp, timestamp),
	OPERATOR 3 = (timestamp, timestamp),
	OPERATOR 4 >= (timestamp, timestamp),
	OPERATOR 5 > (timestamp, timestamp),
	OPERATOR 1 < (timestamptz, timestamptz),
	OPERATOR 2 <= (timestamptz, timestamptz),
	OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 >= (timestamptz, timestamptz),
	OPERATOR 5 > (timestamptz, timestamptz),
	OPERATOR 1 < (oid, oid),
	OPERATOR 2 <= (oid, oid),
	OPERATOR 3 = (oid, oid),
	OPERATOR 4 >= (oid, oid),
	OPERATOR 5 > (oid, oid),
	OPERATOR 1 < (anyenum, anyenum),
	OPERATOR 2 <= (anyenum, anyenum),
	OPERATOR 3 = (anyenum, anyenum),
	OPERATOR 4 >= (anyenum, anyenum),
	OPERATOR 5 > (anyenum, anyenum),
	OPERATOR 1 < (uuid, uuid),
	OPERATOR 2 <= (uuid, uuid),
	OPERATOR 3 = (uuid, uuid),
	OPERATOR 4 >= (uuid, uuid),
	OPERATOR 5 > (uuid, uuid),
	OPERATOR 3 = (text, text),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 3 = (inet, inet);

CREATE OPERATOR CLASS filter_ops
	DEFAULT FOR TYPE anyelement USING graph AS
	OPERATOR 1 < (int2, int2),
	OPERATOR 2 <= (int2, int2),
	OPERATOR 3 = (int2, int2),
	OPERATOR 4 >= (int2, int2),
	OPERATOR 5 > (int2, int2),
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int4),
	OPERATOR 2 <= (int4, int4),
	OPERATOR 3 = (int4, int4),
	OPERATOR 4 >= (int4, int4),
	OPERATOR 5 > (int4, int4),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	OPERATOR 1 < (int8, int8),
	OPERATOR 2 <= (int8, int8),
	OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8),
	OPERATOR 5 > (int8, int8),
	OPERATOR 1 < (float4, float4),
	OPERATOR 2 <= (float4, float4),
	OPERATOR 3 = (float4, float4),
	OPERATOR 4 >= (float4, float4),
	OPERATOR 5 > (float4, float4),
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4),
	OPERATOR 1 < (float8, float8),
	OPERATOR 2 <= (float8, float8),
	OPERATOR 3 = (float8, float8),
	OPERATOR 4 >= (float8, float8),
	OPERATOR 5 > (float8, float8),
	OPERATOR 1 < (numeric, numeric),
	OPERATOR 2 <= (numeric, numeric),
	OPERATOR 3 = (numeric, numeric),
	OPERATOR 4 >= (numeric, numeric),
	OPERATOR 5 > (numeric, numeric),
	OPERATOR 1 < (bool, bool),
	OPERATOR 2 <= (bool, bool),
	OPERATOR 3 = (bool, bool),
	OPERATOR 4 >= (bool, bool),
	OPERATOR 5 > (bool, bool),
	OPERATOR 1 < (date, date),
	OPERATOR 2 <= (date, date),
	OPERATOR 3 = (date, date),
	OPERATOR 4 >= (date, date),
	OPERATOR 5 > (date, date),
	OPERATOR 1 < (timestamp, timestamp),
	OPERATOR 2 <= (timestamp, timestamp),
	OPERATOR 3 = (timestamp, timestamp),
	OPERATOR 4 >= (timestamp, timestamp),
	OPERATOR 5 > (timestamp, timestamp),
	OPERATOR 1 < (timestamptz, timestamptz),
	OPERATOR 2 <= (timestamptz, timestamptz),
	OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 >= (timestamptz, timestamptz),
	OPERATOR 5 > (timestamptz, timestamptz),
	OPERATOR 1 < (oid, oid),
	OPERATOR 2 <= (oid, oid),
	OPERATOR 3 = (oid, oid),
	OPERATOR 4 >= (oid, oid),
	OPERATOR 5 > (oid, oid),
	OPERATOR 1 < (anyenum, anyenum),
	OPERATOR 2 <= (anyenum, anyenum),
	OPERATOR 3 = (anyenum, anyenum),
	OPERATOR 4 >= (anyenum, anyenum),
	OPERATOR 5 > (anyenum, anyenum),
	OPERATOR 1 < (uuid, uuid),
	OPERATOR 2 <= (uuid, uuid),
	OPERATOR 3 = (uuid, uuid),
	OPERATOR 4 >= (uuid, uuid),
	OPERATOR 5 > (uuid, uuid),
	OPERATOR 3 = (text, text),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 3 = (inet, inet);

CREATE OPERATOR CLASS filter_ops
	DEFAULT FOR TYPE anyelement USING matchcount AS
	OPERATOR 1 < (int2, int2),
	OPERATOR 2 <= (int2, int2),
	OPERATOR 3 = (int2, int2),
	OPERATOR 4 >= (int2, int2),
	OPERATOR 5 > (int2, int2),
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int4),
	OPERATOR 2 <= (int4, int4),
	OPERATOR 3 = (int4, int4),
	OPERATOR 4 >= (int4, int4),
	OPERATOR 5 > (int4, int4),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	OPERATOR 1 < (int8, int8),
	OPERATOR 2 <= (int8, int8),
	OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8),
	OPERATOR 5 > (int8, int8),
	OPERATOR 1 < (float4, float4),
	OPERATOR 2 <= (float4, float4),
	OPERATOR 3 = (float4, float4),
	OPERATOR 4 >= (float4, float4),
	OPERATOR 5 > (float4, float4),
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4),
	OPERATOR 1 < (float8, float8),
	OPERATOR 2 <= (float8, float8),
	OPERATOR 3 = (float8, float8),
	OPERATOR 4 >= (float8, float8),
	OPERATOR 5 > (float8, float8),
	OPERATOR 1 < (numeric, numeric),
	OPERATOR 2 <= (numeric, numeric),
	OPERATOR 3 = (numeric, numeric),
	OPERATOR 4 >= (numeric, numeric),
	OPERATOR 5 > (numeric, numeric),
	OPERATOR 1 < (bool, bool),
	OPERATOR 2 <= (bool, bool),
	OPERATOR 3 = (bool, bool),
	OPERATOR 4 >= (bool, bool),
	OPERATOR 5 > (bool, bool),
	OPERATOR 1 < (date, date),
	OPERATOR 2 <= (date, date),
	OPERATOR 3 = (date, date),
	OPERATOR 4 >= (date, date),
	OPERATOR 5 > (date, date),
	OPERATOR 1 < (timestamp, timestamp),
	OPERATOR 2 <= (timestamp, timestamp),
	OPERATOR 3 = (timestamp, timestamp),
	OPERATOR 4 >= (timestamp, timestamp),
	OPERATOR 5 > (timestamp, timestamp),
	OPERATOR 1 < (timestamptz, timestamptz),
	OPERATOR 2 <= (timestamptz, timestamptz),
	OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 >= (timestamptz, timestamptz),
	OPERATOR 5 > (timestamptz, timestamptz),
	OPERATOR 1 < (oid, oid),
	OPERATOR 2 <= (oid, oid),
	OPERATOR 3 = (oid, oid),
	OPERATOR 4 >= (oid, oid),
	OPERATOR 5 > (oid, oid),
	OPERATOR 1 < (anyenum, anyenum),
	OPERATOR 2 <= (anyenum, anyenum),
	OPERATOR 3 = (anyenum, anyenum),
	OPERATOR 4 >= (anyenum, anyenum),
	OPERATOR 5 > (anyenum, anyenum),
	OPERATOR 1 < (uuid, uuid),
	OPERATOR 2 <= (uuid, uuid),
	OPERATOR 3 = (uuid, uuid),
	OPERATOR 4 >= (uuid, uuid),
	OPERATOR 5 > (uuid, uuid),
	OPERATOR 3 = (text, text),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 3 = (inet, inet);
-- end of generated

-- recall of searches with conditions

CREATE FUNCTION pgwarp_recall(index regclass, filter_columns text[], k integer DEFAULT 10, sample integer DEFAULT 1000)
	RETURNS double precision
	AS 'MODULE_PATHNAME', 'pgwarp_recall_among' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 1000000;

COMMENT ON FUNCTION pgwarp_recall(regclass, text[], integer, integer) IS 'recall of an index among the rows that equal the query''s row in some columns, measured with rows of its table';

-- merges by the access method's handler, whatever the method is called

CREATE OR REPLACE VIEW pgwarp_merge_progress AS
	SELECT s.pid, s.relid AS table_oid, s.param7::oid AS index_oid,
		pg_catalog.pg_indexam_progress_phasename(s.param9::oid, s.param11) AS phase
	FROM pg_catalog.pg_stat_get_progress_info('CREATE INDEX') AS s
		JOIN pg_catalog.pg_am AS a ON a.oid = s.param9::oid AND a.amhandler IN (
			'pgwarp_exact_handler(internal)'::pg_catalog.regprocedure,
			'pgwarp_ivfadc_handler(internal)'::pg_catalog.regprocedure,
			'pgwarp_pqtree_handler(internal)'::pg_catalog.regprocedure,
			'pgwarp_graph_handler(internal)'::pg_catalog.regprocedure,
			'pgwarp_matchcount_handler(internal)'::pg_catalog.regprocedure)
	WHERE s.param1 = 0 AND s.datid = (SELECT d.oid FROM pg_catalog.pg_database AS d
		WHERE d.datname = pg_catalog.current_database());

-- advice before an index is built

CREATE FUNCTION pgwarp_advise(
	relation regclass,
	"column" name,
	operator text DEFAULT NULL,
	OUT method text,
	OUT operator_class text,
	OUT ordered_by text,
	OUT recommended boolean,
	OUT is_exact boolean,
	OUT rows bigint,
	OUT dimensions integer,
	OUT index_bytes bigint,
	OUT engine_bytes bigint,
	OUT gpu_bytes bigint,
	OUT build_time interval,
	OUT compared_rows bigint,
	OUT statement text,
	OUT warnings text[]
) RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 5;
COMMENT ON FUNCTION pgwarp_advise(regclass, name, text) IS 'the indexes that a column could have, with their sizes and build times estimated';
